// Package slow has a test that its caller puts behind a link:
//
//	airloom emulate wpt/3g --seed 7 -- go test ./...
package slow

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestAFileComesInTimeOverTheLink(t *testing.T) {
	link := os.Getenv("AIRLOOM_LINK")
	if link == "" {
		t.Fatal("no link here: airloom emulate wpt/3g -- go test ./...")
	}
	start := time.Now()
	// The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
	answer, err := http.Get("http://10.77.0.1/20kB")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	took := time.Since(start)
	if err != nil || len(body) != 20000 {
		t.Fatalf("%d octets: %v", len(body), err)
	}
	t.Logf("%v over %s, seed %s", took, link, os.Getenv("AIRLOOM_SEED"))
	// Two round trips of 300 ms, and 20 kB at 1.6 Mbit/s.
	if took < 600*time.Millisecond || took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
