package main

import (
	"strings"
	"testing"
)

func TestReasonsAreCountedMostFrequentFirst(t *testing.T) {
	events := `{"Action":"output","Package":"a","Test":"TestOne","Output":"    a_test.go:7: it needs root\n"}
{"Action":"skip","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestTwo","Output":"    a_test.go:9: it takes long\n"}
{"Action":"skip","Package":"a","Test":"TestTwo"}
{"Action":"output","Package":"b","Test":"TestOne","Output":"    b_test.go:9: it takes long\n"}
{"Action":"output","Package":"b","Test":"TestOne","Output":"--- SKIP: TestOne (0.00s)\n"}
{"Action":"skip","Package":"b","Test":"TestOne"}
{"Action":"output","Package":"b","Test":"TestThree","Output":"    b_test.go:3: a log line\n"}
{"Action":"pass","Package":"b","Test":"TestThree"}
{"Action":"skip","Package":"c"}
`
	var out strings.Builder
	if err := report(strings.NewReader(events), &out); err != nil {
		t.Fatal(err)
	}
	if want := "Skipped tests, by reason:\n    2  it takes long\n    1  it needs root\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestNothingIsPrintedWhenNothingIsSkipped(t *testing.T) {
	var out strings.Builder
	if err := report(strings.NewReader(`{"Action":"pass","Package":"a","Test":"TestOne"}`), &out); err != nil || out.Len() > 0 {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestALineThatIsNoEventIsAnError(t *testing.T) {
	if err := report(strings.NewReader("FAIL\n"), &strings.Builder{}); err == nil {
		t.Error("there is no error")
	}
}
