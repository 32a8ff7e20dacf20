// Sends a body that is too large with Go's own client, and prints status@seconds of each call.
// usage: go run too_large.go URL KEY MEGABYTES TIMES
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func send(url, key string, body []byte, chunked, expect bool) string {
	var reader io.Reader = bytes.NewReader(body)
	if chunked {
		reader = io.MultiReader(reader) // of a length that the client does not know
	}
	request, err := http.NewRequest("POST", url, reader)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", key)
	request.Header.Set("Content-Type", "application/json")
	if expect {
		request.Header.Set("Expect", "100-continue")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 5 * time.Second}}
	answer, err := client.Do(request)
	if err != nil {
		return "error: " + err.Error()
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	return strconv.Itoa(answer.StatusCode)
}

func main() {
	megabytes, _ := strconv.Atoi(os.Args[3])
	times, _ := strconv.Atoi(os.Args[4])
	body := bytes.Repeat([]byte("x"), megabytes<<20)
	for _, kind := range []struct {
		name            string
		chunked, expect bool
	}{{"go, length", false, false}, {"go, chunks", true, false}, {"go, length, expect", false, true}, {"go, chunks, expect", true, true}} {
		fmt.Print(kind.name, ":")
		for i := 0; i < times; i++ {
			start := time.Now()
			status := send(os.Args[1], os.Args[2], body, kind.chunked, kind.expect)
			fmt.Printf(" %s@%.3f", strings.ReplaceAll(status, " ", "_"), time.Since(start).Seconds())
		}
		fmt.Println()
	}
}
