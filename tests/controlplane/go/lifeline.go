package main

import (
	"io"
	"os"
)

// holdLifeline ends this process as soon as its standard input is closed, when the variable
// CONTROLPLANE_LIFELINE is set. The test process holds the other end of that pipe, so that a component
// never outlives it, however it died. (A parent-death signal would be tied to the thread that started
// the component instead.)
func holdLifeline() {
	if os.Getenv("CONTROLPLANE_LIFELINE") == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
}
