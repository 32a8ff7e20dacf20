// Follows jobs as the public Go SDK does, all at the same time, and prints what each stream gave: a line of JSON.
// It asks with POST and a wait, at once again after each answer; any status but 200 ends the stream.
// usage: go run streams.go URL KEY ENDPOINT JOB...        URL ends in /sdk/v2
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

type piece struct {
	Output struct{ Chunk int }
}

type answer struct {
	Status string
	Stream []piece
}

type followed struct {
	Numbers []int   `json:"numbers"`
	Error   *string `json:"error"`
}

func ask(url, key string) (answer, error) {
	var got answer
	request, err := http.NewRequest("POST", url, nil)
	if err != nil {
		return got, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
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

func follow(url, key string) followed {
	result := followed{Numbers: []int{}}
	for {
		got, err := ask(url, key)
		if err != nil {
			text := err.Error()
			result.Error = &text
			return result
		}
		for _, each := range got.Stream {
			result.Numbers = append(result.Numbers, each.Output.Chunk)
		}
		switch got.Status {
		case "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT":
			return result
		}
	}
}

func main() {
	base, key, endpoint, jobs := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	results := make([]followed, len(jobs))
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Add(1)
		go func(i int, url string) {
			defer all.Done()
			results[i] = follow(url, key)
		}(i, base+"/"+endpoint+"/stream/"+job+"?wait=90000")
	}
	all.Wait()
	text, _ := json.Marshal(results)
	fmt.Println(string(text))
}
