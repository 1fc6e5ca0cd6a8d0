package stream

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheEndOfAnIdleAnswerHasTimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		read := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(client)
			read <- string(all)
		}()
		o := &Output{Buf: []byte("news"), conn: server, timeout: time.Second}
		if err := o.Flush(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if err := o.Finish(); err != nil {
			t.Errorf("the end of the answer: %v", err)
		}
		_ = server.Close()
		if got := <-read; got != "4\r\nnews\r\n0\r\n\r\n" {
			t.Errorf("the client got %q", got)
		}
	})
}
