package main

import (
	"fmt"
	"slices"
	"strings"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/telemetry"
)

const introduction = `# Phases, reasons, Events and metrics

This page is generated from the code by ` + "`make generate`" + `, and a test compares it.

Automation compares type, status and reason of a condition, and only where ` + "`observedGeneration`" + ` equals the resource's
generation; messages and phases are for people. The reasons are a closed vocabulary: none is ever given another meaning. ` + "`Unknown`" + `
means that there is no current evidence, not that there is an error. ` + "`kubectl ptah schema NAME`" + ` prints what to do.
`

// page is the whole page.
func page() string {
	var out strings.Builder
	out.WriteString(introduction)
	phases(&out)
	reasons(&out)
	events(&out)
	metrics(&out)
	return out.String()
}

func row(out *strings.Builder, cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", "\\|")
	}
	out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func head(out *strings.Builder, title, text string, columns ...string) {
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n", title, text)
	row(out, columns...)
	rule := make([]string, len(columns))
	for i := range rule {
		rule[i] = "---"
	}
	row(out, rule...)
}

func phases(out *strings.Builder) {
	head(out, "Phases of a PtahSchema", "A phase is a word for people; it follows from the rest of the status.", "Phase", "Meaning", "What comes next")
	for _, entry := range v1alpha1.Phases() {
		row(out, "`"+string(entry.Phase)+"`", entry.Meaning, entry.Next)
	}
}

func reasons(out *strings.Builder) {
	head(out, "Reasons of conditions", "A condition without a kind is one of PtahSchema.", "Reason", "Stands in", "Meaning", "What a person does")
	for _, entry := range v1alpha1.Vocabulary() {
		places := make([]string, len(entry.Conditions))
		for i, condition := range entry.Conditions {
			places[i] = condition.Type
			if condition.Kind != "PtahSchema" {
				places[i] = condition.Kind + " " + condition.Type
			}
		}
		slices.Sort(places)
		action := entry.Action
		if action == "" {
			action = "Nothing."
		}
		row(out, "`"+string(entry.Reason)+"`", strings.Join(places, ", "), entry.Meaning, action)
	}
}

func events(out *strings.Builder) {
	head(out, "Events", "A refresh that changes nothing sends none.", "Reason", "Type", "On", "When")
	for _, entry := range v1alpha1.Events() {
		kind := "Normal"
		if entry.Warning {
			kind = "Warning"
		}
		row(out, "`"+string(entry.Reason)+"`", kind, entry.Kind, entry.When)
	}
}

func metrics(out *strings.Builder) {
	head(out, "Metrics of the manager", "Each counter moves when a transition happens, and never because a status was read again. Every label has a closed set of values.",
		"Metric", "Type", "Labels", "Meaning")
	for _, metric := range telemetry.Catalogue() {
		labels := make([]string, len(metric.Labels))
		for i, label := range metric.Labels {
			labels[i] = label.Name + ": " + strings.Join(label.Values, ", ")
		}
		row(out, "`"+metric.Name+"`", metric.Type, strings.Join(labels, "; "), metric.Help)
	}
}
