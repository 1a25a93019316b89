// Package operation names, builds, dispatches and reads the short-lived Jobs that do what the manager itself never
// does: talk to a registry and to a database. Both resource families share it. A Job is a pure function of its order:
// the same order gives the same bytes in every manager, or a Job in flight would not be recognised after a restart.
package operation
