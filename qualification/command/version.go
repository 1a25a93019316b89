package command

// Version of ptah-qualify, which is released with the operator's chart and has its version.
const Version = "0.1.0"
