package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

// selectorEnvironment names the CEL environment. The scheduler compiles stored
// expressions, which see every library and ignore the gates; an API server on create
// uses new ones.
type selectorEnvironment struct {
	Stored             *bool `json:"stored,omitempty"`
	ConsumableCapacity *bool `json:"consumableCapacity,omitempty"`
	ListTypeAttributes bool  `json:"listTypeAttributes,omitempty"`
}

// selectorAttribute is one attribute value; exactly one field is meant to be set.
type selectorAttribute struct {
	Int      *int64   `json:"int,omitempty"`
	Bool     *bool    `json:"bool,omitempty"`
	String   *string  `json:"string,omitempty"`
	Version  *string  `json:"version,omitempty"`
	Ints     []int64  `json:"ints,omitempty"`
	Bools    []bool   `json:"bools,omitempty"`
	Strings  []string `json:"strings,omitempty"`
	Versions []string `json:"versions,omitempty"`
}

type selectorDevice struct {
	Driver                   string                       `json:"driver"`
	Attributes               map[string]selectorAttribute `json:"attributes"`
	Capacity                 map[string]string            `json:"capacity"`
	AllowMultipleAllocations *bool                        `json:"allowMultipleAllocations,omitempty"`
}

type selectorRequest struct {
	Expression  string              `json:"expression"`
	Device      *selectorDevice     `json:"device"`
	Devices     []selectorDevice    `json:"devices"`
	Environment selectorEnvironment `json:"environment"`
	Estimate    bool                `json:"estimate"`
	Repeat      int                 `json:"repeat"`
}

type selectorVerdict struct {
	Verdict string  `json:"verdict"`
	Error   string  `json:"error,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
	MaxCost *uint64 `json:"maxCost,omitempty"`
}

// celCompiler is the part of the compiler that the oracle needs; its type is not exported.
type celCompiler interface {
	CompileCELExpression(expression string, options cel.Options) cel.CompilationResult
}

// compilers keeps one compiler for each set of features: the package keeps only the
// latest, and building one costs much more than compiling an expression.
var compilers = map[cel.Features]celCompiler{}

func compilerFor(features cel.Features) celCompiler {
	compiler, ok := compilers[features]
	if !ok {
		compiler = cel.GetCompiler(features)
		compilers[features] = compiler
	}
	return compiler
}

func (e selectorEnvironment) features() cel.Features {
	return cel.Features{
		EnableConsumableCapacity: e.ConsumableCapacity == nil || *e.ConsumableCapacity,
		EnableListTypeAttributes: e.ListTypeAttributes,
	}
}

func (e selectorEnvironment) envType() environment.Type {
	if e.Stored == nil || *e.Stored {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

func (d selectorDevice) input() (cel.Device, error) {
	device := cel.Device{
		Driver:                   d.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(d.Attributes)),
		Capacity:                 make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, len(d.Capacity)),
	}
	for name, value := range d.Attributes {
		device.Attributes[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{
			IntValue: value.Int, BoolValue: value.Bool, StringValue: value.String, VersionValue: value.Version,
			IntValues: value.Ints, BoolValues: value.Bools, StringValues: value.Strings, VersionValues: value.Versions,
		}
	}
	for name, text := range d.Capacity {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return device, fmt.Errorf("device.capacity[%q]: %w", name, err)
		}
		device.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: quantity}
	}
	return device, nil
}

// compile answers the compiled expression, or the verdict of one that does not compile.
// A panic inside the compiler is a verdict of its own.
func (r selectorRequest) compile() (result cel.CompilationResult, failed *selectorVerdict) {
	defer func() {
		if cause := recover(); cause != nil {
			failed = &selectorVerdict{Verdict: "panic", Error: fmt.Sprint(cause)}
		}
	}()
	envType := r.Environment.envType()
	result = compilerFor(r.Environment.features()).CompileCELExpression(r.Expression, cel.Options{
		EnvType:               &envType,
		DisableCostEstimation: !r.Estimate,
	})
	if result.Error != nil {
		return result, &selectorVerdict{Verdict: "compile error", Error: result.Error.Error()}
	}
	return result, nil
}

const selectorTimeout = 30 * time.Second

func evaluate(result cel.CompilationResult, device cel.Device) (verdict selectorVerdict) {
	defer func() {
		if cause := recover(); cause != nil {
			verdict = selectorVerdict{Verdict: "panic", Error: fmt.Sprint(cause)}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), selectorTimeout)
	defer cancel()
	matches, details, err := result.DeviceMatches(ctx, device)
	verdict = selectorVerdict{Verdict: "false"}
	if details != nil {
		verdict.Cost = details.ActualCost()
	}
	switch {
	case err != nil:
		verdict.Verdict = "runtime error"
		verdict.Error = err.Error()
	case matches:
		verdict.Verdict = "true"
	}
	if result.MaxCost != math.MaxUint64 {
		maxCost := result.MaxCost
		verdict.MaxCost = &maxCost
	}
	return verdict
}

// answerSelector evaluates one expression on one device, or on each of several. With
// "repeat" it answers every distinct verdict seen: Go iterates maps in random order, so
// an expression that iterates over attributes may have more than one.
func answerSelector(line []byte) (any, error) {
	var request selectorRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	devices := request.Devices
	if request.Device != nil {
		devices = []selectorDevice{*request.Device}
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("a selector request needs device or devices")
	}
	inputs := make([]cel.Device, len(devices))
	for i, device := range devices {
		input, err := device.input()
		if err != nil {
			return nil, err
		}
		inputs[i] = input
	}
	result, failed := request.compile()
	if failed != nil {
		if request.Device != nil {
			return failed, nil
		}
		return map[string]any{"verdicts": []selectorVerdict{*failed}}, nil
	}
	if request.Device == nil {
		verdicts := make([]selectorVerdict, len(inputs))
		for i, input := range inputs {
			verdicts[i] = evaluate(result, input)
		}
		return map[string]any{"verdicts": verdicts}, nil
	}
	if request.Repeat <= 1 {
		return evaluate(result, inputs[0]), nil
	}
	return map[string]any{"distinct": distinctVerdicts(result, inputs[0], request.Repeat)}, nil
}

func distinctVerdicts(result cel.CompilationResult, input cel.Device, repeat int) []selectorVerdict {
	seen := map[string]bool{}
	var distinct []selectorVerdict
	for range repeat {
		verdict := evaluate(result, input)
		body, _ := json.Marshal(verdict)
		if !seen[string(body)] {
			seen[string(body)] = true
			distinct = append(distinct, verdict)
		}
	}
	return distinct
}

// answerBenchSelector times evaluation of one compiled expression on one device, as the
// allocator does it: the device's maps are built on every call.
func answerBenchSelector(line []byte) (any, error) {
	var request selectorRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	if request.Device == nil {
		return nil, fmt.Errorf("bench-selector needs device")
	}
	input, err := request.Device.input()
	if err != nil {
		return nil, err
	}
	compileStart := time.Now()
	result, failed := request.compile()
	compileNs := time.Since(compileStart).Nanoseconds()
	if failed != nil {
		return nil, fmt.Errorf("expression does not compile: %s", strings.TrimSpace(failed.Error))
	}
	start := time.Now()
	for range request.Repeat {
		if _, _, err := result.DeviceMatches(context.Background(), input); err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"compileNs": compileNs, "evaluateNs": time.Since(start).Nanoseconds(), "repeat": request.Repeat,
	}, nil
}
