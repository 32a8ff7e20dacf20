// Each operation as the public Go SDK does it, and prints what it read: a line of JSON. The types are as strict as those of
// the SDK: a number with a fraction or an error that is no string ends the program. Any status but 200 is an error.
// usage: go run operations.go URL KEY        URL ends in /sdk/v2; the endpoints are those of test_operations.py
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

type job struct {
	Id            string
	Status        string
	Output        any    `json:",omitempty"`
	Error         string `json:",omitempty"`
	DelayTime     int    `json:",omitempty"`
	ExecutionTime int    `json:",omitempty"`
	Retries       int    `json:",omitempty"`
}

type health struct {
	Workers struct{ Running, Idle, Initializing, Ready, Throttled int }
	Jobs    struct{ InProgress, InQueue, Completed, Failed, Retried int }
}

type purged struct {
	Status  string
	Removed int
}

type streamed struct {
	Status string
	Stream []map[string]any
}

// Sends a request with a body, or with an empty one, and decodes the answer.
func ask[T any](method, path, body string) (T, error) {
	var got T
	request, err := http.NewRequest(method, os.Args[1]+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return got, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+os.Args[2])
	client := &http.Client{Timeout: 92 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return got, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return got, fmt.Errorf("response status %s", response.Status)
	}
	return got, json.NewDecoder(response.Body).Decode(&got)
}

func must[T any](got T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return got
}

func post[T any](path, body string) T { return must(ask[T]("POST", path, body)) }

func main() {
	ended := func(endpoint, id string) job { return post[job]("/"+endpoint+"/status-sync/"+id+"?wait=60000", "") }
	numbers := post[job]("/stream/run", `{"input":{"count":3}}`)
	chunks := []map[string]any{}
	for state := ""; state != "COMPLETED"; {
		got := post[streamed]("/stream/stream/"+numbers.Id+"?wait=60000", "")
		chunks, state = append(chunks, got.Stream...), got.Status
	}
	begun := post[job]("/remote/run", `{"input":{"until":"never"}}`)
	for post[job]("/remote/status/"+begun.Id, "").Status != "IN_PROGRESS" {
	}
	cancel := post[job]("/remote/cancel/"+begun.Id, "")
	waiting := post[job]("/parked/run", `{"input":{"a":1},"policy":{"executionTimeout":3000},"webhookV2":"http://127.0.0.1:9/x"}`)
	_, withoutInput := ask[job]("POST", "/remote/run", `{}`)
	_, nowhere := ask[job]("POST", "/nowhere/run", `{"input":{"a":1}}`)
	text := must(json.Marshal(map[string]any{
		"sync":         post[job]("/remote/runsync?wait=60000", `{"input":{"a":1}}`),
		"failed":       post[job]("/remote/runsync?wait=60000", `{"input":{"evaluate":"{'error': {'code': 7}}"}}`),
		"raised":       post[job]("/remote/runsync?wait=60000", `{"input":{"raise":"cold"}}`),
		"ended":        ended("stream", numbers.Id),
		"chunks":       chunks,
		"begun":        begun,
		"cancel":       cancel,
		"cancelled":    ended("remote", begun.Id),
		"waiting":      post[job]("/parked/status/"+waiting.Id, ""),
		"held":         post[job]("/parked/status-sync/"+waiting.Id+"?wait=0", ""),
		"health":       must(ask[health]("GET", "/remote/health", "")),
		"purge":        post[purged]("/parked/purge-queue", ""),
		"withoutInput": withoutInput.Error(),
		"nowhere":      nowhere.Error(),
	}))
	fmt.Println(string(text))
}
