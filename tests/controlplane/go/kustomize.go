package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize answers `kustomize build DIRECTORY` as the kustomize command does with its default
// options: the built objects as YAML on stdout, a fault as one line on stderr and exit status 1.
func kustomize(arguments []string) int {
	if len(arguments) != 2 || arguments[0] != "build" {
		fmt.Fprintln(os.Stderr, "usage: controlplane kustomize build DIRECTORY")
		return 2
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), arguments[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "kustomize build %s: %v\n", arguments[1], err)
		return 1
	}
	text, err := built.AsYaml()
	if err != nil {
		fmt.Fprintf(os.Stderr, "kustomize build %s: %v\n", arguments[1], err)
		return 1
	}
	if _, err := os.Stdout.Write(text); err != nil {
		fmt.Fprintf(os.Stderr, "kustomize build %s: %v\n", arguments[1], err)
		return 1
	}
	return 0
}
