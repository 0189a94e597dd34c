package main

import (
	"context"
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

type derivedAnswer struct {
	Attribute *resourceapi.DeviceAttribute `json:"attribute,omitempty"`
	Fault     string                       `json:"faultKind,omitempty"`
	Error     string                       `json:"error,omitempty"`
}

// answerDerive computes a derived attribute of one device.
func answerDerive(line []byte) (any, error) {
	var request selectorRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	if request.Device == nil {
		return nil, fmt.Errorf("derive needs device")
	}
	input, err := request.Device.input()
	if err != nil {
		return nil, err
	}
	envType := request.Environment.envType()
	result := compilerFor(request.Environment.features()).CompileCELExpression(request.Expression, cel.Options{
		EnvType: &envType, DisableCostEstimation: true, DerivedAttribute: true,
	})
	if result.Error != nil {
		return derivedAnswer{Fault: "compile", Error: result.Error.Error()}, nil
	}
	attribute, _, err := result.EvaluateDerivedAttribute(context.Background(), input)
	if err != nil {
		return derivedAnswer{Fault: "runtime", Error: err.Error()}, nil
	}
	return derivedAnswer{Attribute: attribute}, nil
}
