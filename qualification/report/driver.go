package report

import (
	"fmt"

	"ptah.run/ptah/qualification/evidence/driverload"
)

// Driver is what the driver of a cell says about its own load. A driver that was the bottleneck measured itself, so that
// a reader sees how close it came.
type Driver struct {
	Processors int                `json:"processors"` // that it might use
	Load       driverload.Summary `json:"load"`
}

func driverOf(account *driverload.Account) *Driver {
	if account == nil || len(account.Samples) == 0 {
		return nil
	}
	return &Driver{Processors: account.Start.Processors, Load: driverload.Summarize(account.Start, account.Samples, driverload.Declared())}
}

// driver says it in words.
func driver(cell Cell) string {
	if cell.Driver == nil {
		return "kept no account of its own load"
	}
	load := cell.Driver.Load
	var lost int64
	for _, count := range load.Lost {
		lost += count
	}
	throttled := "throttling unknown"
	if load.Throttled != nil {
		throttled = fmt.Sprintf("throttled for %.1f s", *load.Throttled)
	}
	return fmt.Sprintf("%.2f of %d processors on average, at most %d MiB, late in %d of %d intervals, %d readings lost, %s",
		load.Cores, cell.Driver.Processors, load.Memory>>20, load.Late, load.Intervals, lost, throttled)
}
