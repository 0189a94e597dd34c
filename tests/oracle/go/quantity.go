package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

type quantityRequest struct {
	A string `json:"a"`
	B string `json:"b"`
}

type quantityFacts struct {
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`
	Canonical string `json:"canonical,omitempty"`
	Decimal   string `json:"decimal,omitempty"`
	Format    string `json:"format,omitempty"`
	Value     *int64 `json:"value,omitempty"`
	Milli     *int64 `json:"milli,omitempty"`
	AsInt64   *int64 `json:"asInt64,omitempty"`
	Sign      *int   `json:"sign,omitempty"`
}

type quantityAnswer struct {
	A       quantityFacts `json:"a"`
	B       quantityFacts `json:"b"`
	Compare *int          `json:"compare,omitempty"`
	Add     string        `json:"add,omitempty"`
	AddDec  string        `json:"addDecimal,omitempty"`
	Sub     string        `json:"sub,omitempty"`
	SubDec  string        `json:"subDecimal,omitempty"`
	Neg     string        `json:"neg,omitempty"`
}

func factsOf(text string) (resource.Quantity, quantityFacts) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return quantity, quantityFacts{Error: err.Error()}
	}
	value, milli, sign := quantity.Value(), quantity.MilliValue(), quantity.Sign()
	facts := quantityFacts{
		OK: true, Canonical: quantity.String(), Decimal: decimalOf(quantity), Format: string(quantity.Format),
		Value: &value, Milli: &milli, Sign: &sign,
	}
	if exact, ok := quantity.AsInt64(); ok {
		facts.AsInt64 = &exact
	}
	return quantity, facts
}

// decimalOf writes the exact value without suffix. AsDec changes the receiver, hence the copy.
func decimalOf(quantity resource.Quantity) string {
	duplicate := quantity.DeepCopy()
	return duplicate.AsDec().String()
}

// answerQuantity tells what apimachinery makes of one or two texts: how they parse, print,
// compare, add and subtract.
func answerQuantity(line []byte) (any, error) {
	var request quantityRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, fmt.Errorf("quantity: %w", err)
	}
	a, factsA := factsOf(request.A)
	b, factsB := factsOf(request.B)
	answer := quantityAnswer{A: factsA, B: factsB}
	if !factsA.OK {
		return answer, nil
	}
	negated := a.DeepCopy()
	negated.Neg()
	answer.Neg = negated.String()
	if !factsB.OK {
		return answer, nil
	}
	compare := a.Cmp(b)
	answer.Compare = &compare
	sum := a.DeepCopy()
	sum.Add(b.DeepCopy())
	answer.Add, answer.AddDec = sum.String(), decimalOf(sum)
	difference := a.DeepCopy()
	difference.Sub(b.DeepCopy())
	answer.Sub, answer.SubDec = difference.String(), decimalOf(difference)
	return answer, nil
}
