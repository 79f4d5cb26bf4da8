// quic-go on either side of HTTP/3: `serve DIR CERTIFICATE KEY ADDRESS:PORT` and `get URL FILE..`, where each further file is asked
// for by its name.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/quic-go/quic-go/http3"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(dir, certificate, key, address string) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	fail(err)
	server := http3.Server{
		Addr:      address,
		Handler:   http.FileServer(http.Dir(dir)),
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
	}
	fail(server.ListenAndServe())
}

func fetch(client *http.Client, url, file string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 || answer.Proto != "HTTP/3.0" {
		return fmt.Errorf("%s: %s %s", url, answer.Proto, answer.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, answer.Body)
	return err
}

func get(base string, files []string) {
	// Who answers is this machine: the certificate was made for this run.
	transport := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for _, file := range files {
		all.Add(1)
		go func() {
			defer all.Done()
			fail(fetch(client, strings.TrimSuffix(base, "/")+"/"+filepath.Base(file), file))
		}()
	}
	all.Wait()
}

func main() {
	switch {
	case len(os.Args) == 6 && os.Args[1] == "serve":
		serve(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	case len(os.Args) > 3 && os.Args[1] == "get":
		get(os.Args[2], os.Args[3:])
	default:
		fmt.Fprintln(os.Stderr, "serve DIR CERTIFICATE KEY ADDRESS:PORT, or get URL FILE..")
		os.Exit(2)
	}
}
