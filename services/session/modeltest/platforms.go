package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The credentials that the fake of Amazon Bedrock accepts, beside Key as a bearer token.
const (
	AWSKeyID  = "AKIDTEST"
	AWSSecret = "test-secret-71aa"
)

// Vertex starts Anthropic's models at Google Vertex AI, with Key as the access token.
func Vertex(t testing.TB, script Script) *Server {
	s := start(t, "POST /v1/projects/{project}/locations/{region}/publishers/anthropic/models/{call}", script, serveVertex)
	s.URL = s.http.URL
	return s
}

func serveVertex(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get("Authorization") != "Bearer "+Key {
		writeJSON(w, http.StatusUnauthorized, nil, map[string]any{"error": map[string]any{"code": 401, "status": "UNAUTHENTICATED", "message": "no valid token: " + r.Header.Get("Authorization")}})
		return
	}
	name, ok := strings.CutSuffix(r.PathValue("call"), ":streamRawPredict")
	version := ""
	if ok {
		body, version = unpack(s, r, body, map[string]string{"vertex-2023-10-16": "2023-06-01"}, func(m map[string]any) { m["model"] = name })
	}
	answerMessages(s, w, r, body, version)
}

// Bedrock starts Anthropic's models at Amazon Bedrock, in any region.
func Bedrock(t testing.TB, script Script) *Server {
	s := start(t, "POST /model/{model}/invoke-with-response-stream", script, serveBedrock)
	s.URL = s.http.URL
	return s
}

func serveBedrock(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	if err := checkSignature(r, body); err != nil {
		writeJSON(w, http.StatusForbidden, map[string]string{"x-amzn-errortype": "UnrecognizedClientException"}, map[string]any{"message": err.Error()})
		return
	}
	body, version := unpack(s, r, body, map[string]string{"bedrock-2023-05-31": "2023-06-01"}, func(m map[string]any) {
		if _, there := m["stream"]; there {
			s.refuse("stream: extraneous key is not permitted")
		}
		m["model"], m["stream"] = r.PathValue("model"), true
	})
	answerMessages(s, &frames{ResponseWriter: w, encoder: eventstream.NewEncoder()}, r, body, version)
}

// unpack turns a platform's body into that of the API, and returns the version that it names.
func unpack(s *Server, r *http.Request, body []byte, names map[string]string, change func(map[string]any)) ([]byte, string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return body, ""
	}
	if _, there := m["model"]; there || r.Header.Get("anthropic-version") != "" {
		s.refuse("model, anthropic-version: extraneous key is not permitted")
	}
	version, _ := m["anthropic_version"].(string)
	if known, ok := names[version]; ok {
		version = known
	}
	delete(m, "anthropic_version")
	change(m)
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // it was JSON
	}
	return b, version
}

var credential = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=` + AWSKeyID + `/\d{8}/([a-z0-9-]+)/bedrock/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}$`)

// checkSignature checks a bearer token, or a signature of the request as it came.
func checkSignature(r *http.Request, body []byte) error {
	sent := r.Header.Get("Authorization")
	if sent == "Bearer "+Key {
		return nil
	}
	found := credential.FindStringSubmatch(sent)
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if found == nil || err != nil {
		return fmt.Errorf("the request has no signature of ours: %s", sent)
	}
	again := r.Clone(r.Context())
	again.URL.Host, again.Header = r.Host, http.Header{}
	for _, name := range strings.Split(found[2], ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	hash := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: AWSKeyID, SecretAccessKey: AWSSecret}, again, hex.EncodeToString(hash[:]), "bedrock", found[1], at)
	if err != nil || again.Header.Get("Authorization") != sent {
		return fmt.Errorf("the request signature we calculated does not match (%w): %s", err, again.Header.Get("Authorization"))
	}
	return nil
}

// frames writes each event of a stream as a frame of AWS.
type frames struct {
	http.ResponseWriter
	encoder   *eventstream.Encoder
	streaming bool
}

func (f *frames) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *frames) WriteHeader(status int) {
	if f.streaming = f.Header().Get("Content-Type") == "text/event-stream"; f.streaming {
		f.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write takes one whole event.
func (f *frames) Write(b []byte) (int, error) {
	if !f.streaming {
		return f.ResponseWriter.Write(b)
	}
	name, data, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(string(b), "event: "), "\n\n"), "\ndata: ")
	var m eventstream.Message
	head := func(name, value string) { m.Headers.Set(name, eventstream.StringValue(value)) }
	var payload any = map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(data)), "p": "abcd"}
	if name == "error" {
		var e struct {
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return 0, err
		}
		head(":message-type", "exception")
		head(":exception-type", e.Error.Type)
		payload = map[string]string{"message": e.Error.Message}
	} else {
		head(":message-type", "event")
		head(":event-type", "chunk")
	}
	head(":content-type", "application/json")
	var err error
	if m.Payload, err = json.Marshal(payload); err != nil {
		return 0, err
	}
	if err := f.encoder.Encode(f.ResponseWriter, m); err != nil {
		return 0, err
	}
	return len(b), nil
}
