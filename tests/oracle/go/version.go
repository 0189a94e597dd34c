package main

import "runtime/debug"

// answerVersion names the modules whose behaviour the oracle reports.
func answerVersion([]byte) (any, error) {
	modules := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch dep.Path {
			case "k8s.io/dynamic-resource-allocation", "k8s.io/apiserver", "k8s.io/apimachinery", "github.com/google/cel-go":
				modules[dep.Path] = dep.Version
			}
		}
	}
	return map[string]any{"modules": modules}, nil
}
