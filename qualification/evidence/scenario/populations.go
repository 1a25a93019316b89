package scenario

// SteadyState is the population of the one measurement that a driver records for the part of a cell in which nothing but
// the declared workload happens. What a profile counts over its declared duration is counted within it.
const SteadyState = "steady state"
