package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// answerNodeSelector tells whether a node selector selects a node, as pools use it.
func answerNodeSelector(line []byte) (any, error) {
	var request struct {
		Selector *corev1.NodeSelector `json:"selector"`
		Node     caseNode             `json:"node"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	selector, err := nodeaffinity.NewNodeSelector(request.Selector)
	if err != nil {
		return map[string]any{"match": false, "error": err.Error()}, nil
	}
	return map[string]any{"match": selector.Match(request.Node.node())}, nil
}

// answerTolerates tells whether a toleration tolerates a device taint.
func answerTolerates(line []byte) (any, error) {
	var request struct {
		Toleration resourceapi.DeviceToleration `json:"toleration"`
		Taint      resourceapi.DeviceTaint      `json:"taint"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	return map[string]any{"tolerates": resourceclaim.ToleratesTaint(request.Toleration, request.Taint)}, nil
}
