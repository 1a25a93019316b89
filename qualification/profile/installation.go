package profile

import "ptah.run/ptah/qualification/profile/document"

// Installation is how the operator is installed.
type Installation struct {
	Release         string         `json:"release"`
	Namespace       string         `json:"namespace"`
	Replicas        int            `json:"replicas"`
	ManagerIdentity string         `json:"managerIdentity"` // user name in audit events
	LeaderElection  NamespacedName `json:"leaderElection"`  // the Lease whose renewals are counted apart
	Manager         *Manager       `json:"manager,omitempty"`
	PodSecurity     string         `json:"podSecurity,omitempty"` // level that release and workload namespaces enforce
	Execution       *Execution     `json:"execution,omitempty"`
	Monitoring      *Monitoring    `json:"monitoring,omitempty"`
	Conditions      []string       `json:"conditions,omitempty"` // what else must hold of an installation, in sentences
}

// NamespacedName names an object.
type NamespacedName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Manager is what one manager container asks for and may take.
type Manager struct {
	CPURequestMillicores   int `json:"cpuRequestMillicores"`
	MemoryRequestMebibytes int `json:"memoryRequestMebibytes"`
	MemoryLimitMebibytes   int `json:"memoryLimitMebibytes"`
}

// Execution is the limits of every operation.
type Execution struct {
	ActiveDeadline document.Duration `json:"activeDeadline"`
	ConnectTimeout document.Duration `json:"connectTimeout"`
	FailureRetry   document.Duration `json:"failureRetry"`
	LockTimeout    document.Duration `json:"lockTimeout"`
}

// Monitoring is how metrics become notifications.
type Monitoring struct {
	ScrapeEvery   document.Duration `json:"scrapeEvery"`
	EvaluateEvery document.Duration `json:"evaluateEvery"`
	GroupWait     document.Duration `json:"groupWait"`
	Rules         []AlertRule       `json:"rules"`
}

// AlertRule is the timing of one alert.
type AlertRule struct {
	Alert  string            `json:"alert"`
	After  document.Duration `json:"after,omitempty"`  // how long its condition lasts before it fires; none fires at once
	Window document.Duration `json:"window,omitempty"` // how long it looks back, and so keeps firing after the last event
}

// Delay is the time from a scrape that could show a condition to the notification of it, at the most.
func (m Monitoring) Delay() document.Duration { return m.ScrapeEvery + m.EvaluateEvery + m.GroupWait }
