package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// sharePlaceholder stands for every share ID: the real ones are random.
const sharePlaceholder = types.UID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")

type caseDeviceID struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

type caseSharedDeviceID struct {
	caseDeviceID
	ShareID types.UID `json:"shareID"`
}

type caseConsumedCapacity struct {
	caseDeviceID
	ConsumedCapacity map[resourceapi.QualifiedName]resource.Quantity `json:"consumedCapacity"`
}

type caseAllocatedState struct {
	AllocatedDevices         []caseDeviceID         `json:"allocatedDevices"`
	AllocatedSharedDeviceIDs []caseSharedDeviceID   `json:"allocatedSharedDeviceIDs"`
	AggregatedCapacity       []caseConsumedCapacity `json:"aggregatedCapacity"`
}

type caseNode struct {
	Name             string            `json:"name"`
	Labels           map[string]string `json:"labels"`
	DeclaredFeatures []string          `json:"declaredFeatures"`
}

// allocateRequest has the field names of the allocator conformance cases.
type allocateRequest struct {
	Features       structured.Features          `json:"features"`
	AllocatedState caseAllocatedState           `json:"allocatedState"`
	Node           caseNode                     `json:"node"`
	Claims         []*resourceapi.ResourceClaim `json:"claimsInNamespaceOrder"`
	Classes        []*resourceapi.DeviceClass   `json:"classes"`
	Slices         []*resourceapi.ResourceSlice `json:"slices"`
	Context        string                       `json:"context"`

	// Variant restricts the choice of the allocator: stable, incubating or experimental.
	// Without it: incubating, or experimental where incubating lacks a feature.
	Variant   string `json:"variant"`
	TimeoutMS int    `json:"timeoutMs"`
	Repeat    int    `json:"repeat"`
}

type allocateAnswer struct {
	Outcome     string                         `json:"outcome"`
	Results     []resourceapi.AllocationResult `json:"results"`
	Error       *string                        `json:"error"`
	ErrorScope  string                         `json:"errorScope,omitempty"`
	AllocateOne int64                          `json:"allocateOne"`
}

type classLister map[string]*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) {
	classes := make([]*resourceapi.DeviceClass, 0, len(l))
	for _, class := range l {
		classes = append(classes, class)
	}
	return classes, nil
}

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := l[name]; ok {
		return class, nil
	}
	// As the informers' lister says it.
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func (id caseDeviceID) deviceID() structured.DeviceID {
	return structured.MakeDeviceID(id.Driver, id.Pool, id.Device)
}

func (s caseAllocatedState) state() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, id := range s.AllocatedDevices {
		state.AllocatedDevices.Insert(id.deviceID())
	}
	for _, id := range s.AllocatedSharedDeviceIDs {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id.deviceID(), &id.ShareID))
	}
	for _, used := range s.AggregatedCapacity {
		capacity := structured.NewDeviceConsumedCapacity(used.deviceID(), nil)
		for name, quantity := range used.ConsumedCapacity {
			value := quantity.DeepCopy()
			capacity.ConsumedCapacity[name] = &value
		}
		state.AggregatedCapacity.Insert(capacity)
	}
	return state
}

func (n caseNode) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Status:     corev1.NodeStatus{DeclaredFeatures: n.DeclaredFeatures},
	}
}

func (r allocateRequest) lister() classLister {
	lister := classLister{}
	for _, class := range r.Classes {
		lister[class.Name] = class
	}
	return lister
}

func (r allocateRequest) context() (context.Context, context.CancelFunc, error) {
	background := context.Background()
	switch r.Context {
	case "", "off":
		if r.TimeoutMS > 0 {
			ctx, cancel := context.WithTimeout(background, time.Duration(r.TimeoutMS)*time.Millisecond)
			return ctx, cancel, nil
		}
		return background, func() {}, nil
	case "timeout", "deadline":
		ctx, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
		return ctx, cancel, nil
	case "cancel":
		ctx, cancel := context.WithCancel(background)
		cancel()
		return ctx, cancel, nil
	}
	return nil, nil, fmt.Errorf("unknown context %q", r.Context)
}

// caches keeps compiled expressions for each set of CEL features. A compiler is bound to
// its cache, so each is built once.
var caches = map[cel.Features]*cel.Cache{}

const cacheEntries = 256

func cacheFor(features structured.Features) *cel.Cache {
	key := cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	}
	cache, ok := caches[key]
	if !ok {
		cache = cel.NewCache(cacheEntries, key)
		caches[key] = cache
	}
	return cache
}

func (r allocateRequest) newAllocator(ctx context.Context) (structured.Allocator, error) {
	if r.Variant == "" {
		structured.EnableAllocators("incubating", "experimental")
	} else {
		structured.EnableAllocators(r.Variant)
	}
	return structured.NewAllocator(ctx, r.Features, r.AllocatedState.state(), r.lister(), r.Slices, cacheFor(r.Features))
}

// answerAllocate runs one allocation; with "repeat" it answers every distinct outcome,
// because an error that names one of several causes picks it in map order.
func answerAllocate(line []byte) (any, error) {
	var request allocateRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	if request.Repeat <= 1 {
		return request.allocate()
	}
	seen := map[string]bool{}
	var distinct []*allocateAnswer
	for range request.Repeat {
		answer, err := request.allocate()
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		if !seen[string(body)] {
			seen[string(body)] = true
			distinct = append(distinct, answer)
		}
	}
	return map[string]any{"distinct": distinct}, nil
}

// allocate runs the allocation once. A panic inside the allocator, which would end
// kube-scheduler, is an outcome of its own.
func (r allocateRequest) allocate() (answer *allocateAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text := fmt.Sprint(cause)
			answer = &allocateAnswer{Outcome: "panic", Results: []resourceapi.AllocationResult{}, Error: &text}
			err = nil
		}
	}()
	ctx, cancel, err := r.context()
	if err != nil {
		return nil, err
	}
	defer cancel()
	answer = &allocateAnswer{Results: []resourceapi.AllocationResult{}}
	allocator, err := r.newAllocator(ctx)
	if err != nil {
		if strings.HasPrefix(err.Error(), "internal error: no allocator available") {
			return nil, err
		}
		answer.fail(ctx, err)
		return answer, nil
	}
	results, err := allocator.Allocate(ctx, r.Node.node(), r.Claims)
	answer.AllocateOne = invocations(allocator)
	switch {
	case err != nil:
		answer.fail(ctx, err)
	case len(results) < len(r.Claims):
		answer.Outcome = "no-fit"
	default:
		answer.Outcome = "allocated"
		normalise(results)
		answer.Results = append(answer.Results, results...)
	}
	return answer, nil
}

func (a *allocateAnswer) fail(ctx context.Context, err error) {
	text := err.Error()
	a.Outcome = "error"
	a.Error = &text
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		a.ErrorScope = "node"
	case ctx.Err() != nil:
		a.ErrorScope = "interrupted"
	default:
		a.ErrorScope = "fatal"
	}
}

func normalise(results []resourceapi.AllocationResult) {
	for i := range results {
		for j := range results[i].Devices.Results {
			if results[i].Devices.Results[j].ShareID != nil {
				placeholder := sharePlaceholder
				results[i].Devices.Results[j].ShareID = &placeholder
			}
		}
	}
}

// invocations reads the statistics of an allocator, whose type is internal.
func invocations(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return -1
	}
	return method.Call(nil)[0].FieldByName("NumAllocateOneInvocations").Int()
}
