// Package target reads a PostgreSQL connection URL strictly and opens connections from it.
//
// One URL names one endpoint, one database and one role. Whatever could send a session somewhere else or run SQL at
// its start (several hosts, "options", a service file, an unknown parameter) is refused. Nothing of the process's own
// environment (PGHOST, PGOPTIONS, ...) takes part. No error of this package holds the URL or any part of it.
package target

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ptah.run/ptah/operator/plan/report"
)

// MaxURLBytes is the longest URL that is read.
const MaxURLBytes = 8192

// Target is a parsed connection URL.
type Target struct {
	Host     string // a name, an address, or the directory of a Unix socket
	Port     uint16
	Database string
	User     string
	// Role is what the session becomes after login, or empty.
	Role string
	// SearchPath is the list of schemas in which unqualified names of the desired schema are made, or empty.
	SearchPath string

	password string
	// tls are the parameters about transport and authentication, by libpq name.
	tls map[string]string
}

// transport are the parameters that a URL may carry about transport and authentication, with the libpq environment
// variable that stands for each.
var transport = map[string]string{
	"sslmode":         "PGSSLMODE",
	"sslrootcert":     "PGSSLROOTCERT",
	"sslcert":         "PGSSLCERT",
	"sslkey":          "PGSSLKEY",
	"channel_binding": "PGCHANNELBINDING",
}

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// refusals explain parameters that people write and that are refused on purpose.
var refusals = map[string]string{
	"options":        "it can run settings of its own in the session; remove it",
	"service":        "it points to another definition of the database; write the address into the URL",
	"passfile":       "it points to another credential; write the password into the URL",
	"password":       "a password belongs before the host, not into a parameter",
	"user":           "the user belongs before the host, not into a parameter",
	"dbname":         "the database belongs into the path, not into a parameter",
	"port":           "the port belongs behind the host, not into a parameter",
	"hostaddr":       "it replaces the host; write one of them as the host",
	"currentSchema":  "write search_path instead",
	"sslpassword":    "an encrypted client key is not supported",
	"sslnegotiation": "it is not supported",
}

// Parse reads a connection URL.
func Parse(text string) (*Target, error) {
	text = strings.TrimRight(text, "\r\n")
	switch {
	case text == "":
		return nil, errors.New("the database URL is empty; set PTAH_DB_URL or --db-url-file")
	case len(text) > MaxURLBytes:
		return nil, fmt.Errorf("the database URL is longer than %d bytes", MaxURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own message repeats the text, password included.
		return nil, errors.New("the database URL is not a URL; the form is postgres://user:password@host:5432/database?sslmode=require, with special characters percent-encoded")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the database URL does not start with postgres:// or postgresql://")
	}
	if u.Opaque != "" || u.Fragment != "" || u.RawFragment != "" {
		return nil, errors.New("the database URL has an unusable form; percent-encode '#' in the password")
	}
	t := &Target{User: u.User.Username(), tls: map[string]string{}}
	t.password, _ = u.User.Password()
	if err := t.readParameters(u); err != nil {
		return nil, err
	}
	if err := t.readEndpoint(u); err != nil {
		return nil, err
	}
	return t, t.check()
}

func (t *Target) readParameters(u *url.URL) error {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the parameters of the database URL are not percent-encoded properly")
	}
	for key, all := range values {
		if why, refused := refusals[key]; refused {
			return fmt.Errorf("the database URL has the parameter %q: %s", key, why)
		}
		if len(all) != 1 {
			return errors.New("the database URL has a parameter more than once")
		}
		value := all[0]
		switch {
		case transport[key] != "":
			t.tls[key] = value
		case key == "role":
			t.Role = value
		case key == "search_path":
			t.SearchPath = value
		case key == "host" && u.Hostname() == "" && strings.HasPrefix(value, "/"):
			t.Host = value
		case key == "host":
			return errors.New("the database URL has the parameter \"host\"; only the directory of a Unix socket may stand there, and no other host")
		case key == "application_name" || key == "connect_timeout":
			// Neither says which database is meant nor how its session behaves; ptah sets its own.
		default:
			return errors.New("the database URL has a parameter that is not supported; sslmode, sslrootcert, sslcert, sslkey, channel_binding, role, search_path, application_name and connect_timeout are")
		}
	}
	return nil
}

func (t *Target) readEndpoint(u *url.URL) error {
	if strings.Contains(u.Host, ",") {
		return errors.New("the database URL names several hosts; name the one endpoint that takes writes")
	}
	if t.Host == "" {
		t.Host = strings.ToLower(u.Hostname())
	}
	t.Port = 5432
	if port := u.Port(); port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return errors.New("the port of the database URL is not between 1 and 65535")
		}
		t.Port = uint16(number)
	}
	if address, err := netip.ParseAddr(t.Host); err == nil {
		t.Host = address.String()
	}
	t.Database = strings.TrimPrefix(u.Path, "/")
	return nil
}

func (t *Target) check() error {
	switch {
	case t.Host == "":
		return errors.New("the database URL has no host")
	case t.User == "":
		return errors.New("the database URL has no user")
	case t.Database == "" || strings.ContainsAny(t.Database, "/\x00"):
		return errors.New("the database URL has no database after the host, or one with a slash; the form is postgres://user:password@host:5432/database")
	case strings.ContainsRune(t.User+t.password+t.Role+t.Host, 0):
		return errors.New("the database URL holds a NUL byte")
	}
	if mode, ok := t.tls["sslmode"]; ok && !slices.Contains(sslModes, mode) {
		return fmt.Errorf("the parameter sslmode of the database URL is not one of %s", strings.Join(sslModes, ", "))
	}
	if t.SearchPath != "" && !searchPath(t.SearchPath) {
		return errors.New("the parameter search_path of the database URL is not a list of plain schema names separated by commas")
	}
	return nil
}

// searchPath accepts names of lowercase letters, digits and underscores: nothing that needs quotes, nothing special.
func searchPath(text string) bool {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return false
		}
	}
	return true
}

// Identity returns the digest of everything that says which database is meant and how it is reached, without the
// password. Default values and their spelled-out forms have one digest.
func (t *Target) Identity() string {
	mode := t.tls["sslmode"]
	if mode == "" {
		mode = "prefer"
	}
	path := ""
	for name := range strings.SplitSeq(t.SearchPath, ",") {
		path += "," + strings.TrimSpace(name)
	}
	// A struct gives one order of fields; the version lets a later form differ on purpose.
	data, err := json.Marshal(struct {
		Version        int    `json:"version"`
		Engine         string `json:"engine"`
		Host           string `json:"host"`
		Port           uint16 `json:"port"`
		Database       string `json:"database"`
		User           string `json:"user"`
		Role           string `json:"role"`
		SearchPath     string `json:"searchPath"`
		SSLMode        string `json:"sslMode"`
		SSLRootCert    string `json:"sslRootCert"`
		SSLCert        string `json:"sslCert"`
		SSLKey         string `json:"sslKey"`
		ChannelBinding string `json:"channelBinding"`
	}{1, report.DialectPostgreSQL, t.Host, t.Port, t.Database, t.User, t.Role, strings.TrimPrefix(path, ","), mode,
		t.tls["sslrootcert"], t.tls["sslcert"], t.tls["sslkey"], t.tls["channel_binding"]})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return report.Digest(data)
}

// Config returns the configuration of one connection. timeout bounds the whole connection attempt; zero means none.
func (t *Target) Config(timeout time.Duration) (*pgx.ConnConfig, error) {
	// Every setting stands in the string, so that none is taken from the environment.
	settings := []string{
		"host=" + quoteSetting(t.Host),
		"port=" + strconv.Itoa(int(t.Port)),
		"dbname=" + quoteSetting(t.Database),
		"user=" + quoteSetting(t.User),
		"password=" + quoteSetting(t.password),
		"passfile='/dev/null'", "servicefile='/dev/null'", "application_name=ptah", "target_session_attrs=any",
		"options=''", "sslsni=1", "sslcertmode=allow", "sslnegotiation=postgres", "sslpassword=''", "require_auth=''", "connect_timeout=0",
	}
	for _, key := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"} {
		value := t.tls[key]
		if value == "" && (key == "sslmode" || key == "channel_binding") {
			value = "prefer"
		}
		settings = append(settings, key+"="+quoteSetting(value))
	}
	config, err := pgx.ParseConfig(strings.Join(settings, " "))
	if err != nil {
		return nil, errors.New("the database URL names certificate files or transport settings that cannot be used; check sslmode, sslrootcert, sslcert and sslkey, and unset PGSERVICE")
	}
	config.ConnectTimeout = timeout
	config.RuntimeParams = map[string]string{"application_name": "ptah"}
	if t.Role != "" {
		config.RuntimeParams["role"] = t.Role
	}
	if config.TLSConfig != nil {
		config.TLSConfig.MinVersion = tls.VersionTLS12
	}
	return config, nil
}

func quoteSetting(value string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), "'", `\'`) + "'"
}

// Environment returns the libpq environment of a child process that connects to the target: nothing is inherited and
// nothing secret stands on a command line. timeout is rounded up to whole seconds; zero means none.
func (t *Target) Environment(timeout time.Duration) []string {
	env := []string{
		"PGHOST=" + t.Host,
		"PGPORT=" + strconv.Itoa(int(t.Port)),
		"PGDATABASE=" + t.Database,
		"PGUSER=" + t.User,
		"PGPASSWORD=" + t.password,
		"PGPASSFILE=/dev/null",
		"PGAPPNAME=ptah",
		"PGTZ=UTC",
		"PGCLIENTENCODING=UTF8",
		"LC_ALL=C",
		"HOME=/nonexistent",
	}
	if timeout > 0 {
		env = append(env, "PGCONNECT_TIMEOUT="+strconv.Itoa(int((timeout+time.Second-1)/time.Second)))
	}
	for key, variable := range transport {
		if value := t.tls[key]; value != "" {
			env = append(env, variable+"="+value)
		}
	}
	slices.Sort(env)
	return env
}
