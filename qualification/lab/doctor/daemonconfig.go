package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// mergeDaemonConfig adds the bounded runtime, as the default, to a Docker engine's daemon.json and keeps everything
// else that stands there. It refuses a file that is no JSON object, and one whose default runtime is somebody
// else's choice: replacing that would change containers which are not ours.
func mergeDaemonConfig(existing []byte, runtimePath string) ([]byte, error) {
	config := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(existing)) > 0 {
		if err := json.Unmarshal(existing, &config); err != nil {
			return nil, fmt.Errorf("the engine's daemon.json is not a JSON object, so nothing was changed: %w", err)
		}
	}
	if raw, set := config["default-runtime"]; set {
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, fmt.Errorf("default-runtime in the engine's daemon.json is no text, so nothing was changed: %w", err)
		}
		if name != "runc" && name != RuntimeName {
			return nil, fmt.Errorf("the engine's daemon.json already sets default-runtime to %q, so nothing was changed: make %s the default by hand, or use another machine", name, RuntimeName)
		}
	}
	runtimes := map[string]json.RawMessage{}
	if raw, set := config["runtimes"]; set {
		if err := json.Unmarshal(raw, &runtimes); err != nil {
			return nil, fmt.Errorf("runtimes in the engine's daemon.json is no JSON object, so nothing was changed: %w", err)
		}
	}
	entry, err := json.Marshal(map[string]string{"path": runtimePath})
	if err != nil {
		return nil, err
	}
	runtimes[RuntimeName] = entry
	if config["runtimes"], err = json.Marshal(runtimes); err != nil {
		return nil, err
	}
	if config["default-runtime"], err = json.Marshal(RuntimeName); err != nil {
		return nil, err
	}
	merged, err := json.MarshalIndent(config, "", "  ")
	return append(merged, '\n'), err
}
