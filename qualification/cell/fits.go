package cell

import (
	"fmt"
	"strings"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

// Fits refuses a lab that is not the one that a cell of a profile declares: evidence of another Kubernetes minor,
// database, platform or size of cluster would be void.
func Fits(cell matrix.Cell, cluster profile.Cluster, description *lab.Description) error {
	refuse := func(format string, arguments ...any) error {
		return fmt.Errorf("the lab %s does not fit the cell %s: %s", description.ID, cell.Key, fmt.Sprintf(format, arguments...))
	}
	if minor := cell.Minor(); minor != "" && !ofLine(description.KubernetesVersion, minor) {
		return refuse("it runs Kubernetes %s, and the cell is about %s", description.KubernetesVersion, minor)
	}
	if platform := cell.Platform(); platform != "" && platform != description.Platform {
		return refuse("it runs on %s, and the cell is about %s", description.Platform, platform)
	}
	if description.ControlPlanes != cluster.ControlPlanes || description.Workers != cluster.Workers {
		return refuse("it has %d control planes and %d workers, and the profile declares %d and %d", description.ControlPlanes, description.Workers,
			cluster.ControlPlanes, cluster.Workers)
	}
	engine, version := cell.Database()
	if engine == "" {
		return nil
	}
	var found []string
	for _, database := range description.Databases {
		if database.Engine == engine && ofLine(database.Version, version) {
			return nil
		}
		found = append(found, database.Engine+" "+database.Version)
	}
	return refuse("it has %s, and the cell is about %s %s", strings.Join(found, ", "), engine, version)
}

// ofLine says whether a version such as v1.37.2 or 17.6 belongs to a line such as 1.37 or 17.
func ofLine(version, line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), line)
	return ok && (rest == "" || !strings.ContainsAny(rest[:1], "0123456789"))
}
