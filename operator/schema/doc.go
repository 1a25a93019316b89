// Package schema reconciles PtahSchema: it reads the database again and again, publishes what would have to change,
// waits for a decision, has it applied once, and believes nothing about an Apply until the database was read back.
//
// One pass loads the resource past every cache, runs an ordered list of steps until one decides, derives every
// summarising condition in one place and writes the status once. Only the durable boundaries of an Apply write in
// between. The package never opens a database, a registry or a Secret.
package schema
