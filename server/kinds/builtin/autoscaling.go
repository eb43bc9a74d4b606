package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/autoscaling"
)

// autoscalingV2V1 serves one storage in two versions; v2 is preferred and stored.
func (c Config) autoscalingV2V1() []*kinds.Resource {
	storage := &kinds.Storage{Strategy: autoscaling.HorizontalPodAutoscaler(c.Feature)}
	conversion := autoscaling.ConversionFor(c.Feature)
	statusOf := func() []kinds.Subresource {
		return []kinds.Subresource{status()}
	}
	v2 := rows("autoscaling", "v2", &kinds.Resource{
		Plural: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true,
		ShortNames: []string{"hpa"}, Categories: []string{"all"},
		New: object[autoscalingv2.HorizontalPodAutoscaler](), NewList: list[autoscalingv2.HorizontalPodAutoscalerList](),
		Storage: storage, Columns: autoscaling.HorizontalPodAutoscalerColumns,
		Subresources: statusOf(),
	})
	v1 := rows("autoscaling", "v1", &kinds.Resource{
		Plural: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true,
		ShortNames: []string{"hpa"}, Categories: []string{"all"},
		New: object[autoscalingv1.HorizontalPodAutoscaler](), NewList: list[autoscalingv1.HorizontalPodAutoscalerList](),
		Storage: storage, ToStorage: conversion.ToV2, FromStorage: conversion.ToV1, Default: autoscaling.DefaultV1,
		Columns:      autoscaling.HorizontalPodAutoscalerColumns,
		Subresources: statusOf(),
	})
	return append(v2, v1...)
}
