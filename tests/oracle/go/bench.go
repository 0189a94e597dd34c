package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"
)

type benchRequest struct {
	allocateRequest
	Nodes []caseNode `json:"nodes"`
}

type benchRound struct {
	NewAllocatorNs int64 `json:"newAllocatorNs"`
	AllocateNs     int64 `json:"allocateNs"`
	AllocateOne    int64 `json:"allocateOne"`
}

// answerBenchAllocate times one allocator over all given nodes, one node after the other
// on one core: kube-scheduler builds the allocator once for a pod (PreFilter) and calls it
// for each node (Filter). Decoding is not counted; round 0 also compiles the selectors.
func answerBenchAllocate(line []byte) (any, error) {
	var request benchRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	nodes := request.Nodes
	if len(nodes) == 0 {
		nodes = []caseNode{request.Node}
	}
	ctx := context.Background()
	outcomes := map[string]int{}
	rounds := make([]benchRound, 0, max(request.Repeat, 1))
	for len(rounds) < max(request.Repeat, 1) {
		start := time.Now()
		allocator, err := request.newAllocator(ctx)
		if err != nil {
			return nil, err
		}
		built := time.Now()
		clear(outcomes)
		for _, node := range nodes {
			results, err := allocator.Allocate(ctx, node.node(), request.Claims)
			switch {
			case errors.Is(err, structured.ErrFailedAllocationOnNode):
				outcomes["error on node"]++
			case err != nil:
				outcomes["error"]++
			case len(results) < len(request.Claims):
				outcomes["no-fit"]++
			default:
				outcomes["allocated"]++
			}
		}
		rounds = append(rounds, benchRound{
			NewAllocatorNs: built.Sub(start).Nanoseconds(),
			AllocateNs:     time.Since(built).Nanoseconds(),
			AllocateOne:    invocations(allocator),
		})
	}
	return map[string]any{"rounds": rounds, "nodes": len(nodes), "outcomes": outcomes}, nil
}
