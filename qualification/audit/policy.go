package audit

// Policy is the audit policy that every API server of a lab runs with: one Metadata event for each request of every
// identity, without the stage at which nothing is known yet. A watch has two stages, at its start and at its end,
// with one audit id. Metadata level keeps bodies, and with them Secrets, out of the log.
//
// The API server must write the log in blocking mode (--audit-log-mode=blocking), because the batch mode drops
// events under load, and must not rotate events away while a cell runs.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
  - RequestReceived
rules:
  - level: Metadata
`
