// Command oracle answers questions about device selectors, structured allocation,
// quantities, node selectors and taints with the code that kube-scheduler runs.
//
// It reads one JSON object a line from standard input and writes one JSON object a
// line to standard output, in the same order. Every request carries "op"; every answer
// carries the request's "id" if it had one. A request that the oracle itself cannot
// handle is answered with {"fault": "..."}: that is never a verdict.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

type envelope struct {
	Op string          `json:"op"`
	ID json.RawMessage `json:"id,omitempty"`
}

type handler func(line []byte) (any, error)

func main() {
	handlers := map[string]handler{
		"selector":       answerSelector,
		"allocate":       answerAllocate,
		"bench-allocate": answerBenchAllocate,
		"bench-selector": answerBenchSelector,
		"derive":         answerDerive,
		"quantity":       answerQuantity,
		"node-selector":  answerNodeSelector,
		"tolerates":      answerTolerates,
		"version":        answerVersion,
	}
	if err := serve(os.Stdin, os.Stdout, handlers); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve flushes only when no further request is buffered, so that a client may
// pipeline many requests and one that waits for each answer is never left hanging.
func serve(in io.Reader, out io.Writer, handlers map[string]handler) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			if werr := writeAnswer(writer, line, handlers); werr != nil {
				return werr
			}
			if reader.Buffered() == 0 {
				if ferr := writer.Flush(); ferr != nil {
					return ferr
				}
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func writeAnswer(writer *bufio.Writer, line []byte, handlers map[string]handler) error {
	var env envelope
	answer, err := func() (answer any, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		if err := json.Unmarshal(line, &env); err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
		h, ok := handlers[env.Op]
		if !ok {
			return nil, fmt.Errorf("unknown op %q", env.Op)
		}
		return h(line)
	}()
	if err != nil {
		answer = map[string]string{"fault": err.Error()}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"fault": "answer not encodable: " + err.Error()})
	}
	if len(env.ID) > 0 && len(body) > 2 {
		if _, err := fmt.Fprintf(writer, `{"id":%s,`, env.ID); err != nil {
			return err
		}
		body = body[1:]
	}
	if _, err := writer.Write(body); err != nil {
		return err
	}
	return writer.WriteByte('\n')
}
