// Package target reads the URL of a MySQL database and opens sessions to it. Nothing of a session is left to the
// server's or the machine's configuration where it could change what a statement means.
package target

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/plan/report"
)

// MaxURLBytes is the longest database URL: 8 KiB.
const MaxURLBytes = 8 << 10

// Target is one database and how to reach it.
type Target struct {
	Host     string // a name or an address; empty with a socket
	Port     uint16
	Socket   string // an absolute path, or empty
	Database string
	User     string

	password string
	// tls are the parameters about transport, by name.
	tls map[string]string
}

// Scheme says whether a URL means a MySQL database.
func Scheme(text string) bool {
	scheme, _, _ := strings.Cut(text, ":")
	return strings.EqualFold(scheme, "mysql")
}

const form = "the form is mysql://user:password@host:3306/database?tls=true, with special characters percent-encoded"

// transport are the parameters about transport.
var transport = []string{"tls", "ssl-ca", "ssl-cert", "ssl-key"}

// modes of the parameter tls. "preferred" is the default: encrypted where the server can, and then unverified.
var modes = []string{"false", "preferred", "skip-verify", "true"}

// Parse reads a connection URL.
func Parse(text string) (*Target, error) {
	text = strings.TrimRight(text, "\r\n")
	if len(text) > MaxURLBytes {
		return nil, fmt.Errorf("the database URL is longer than %d bytes", MaxURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own message repeats the text, password included.
		return nil, errors.New("the database URL is not a URL; " + form)
	}
	if u.Scheme != "mysql" {
		return nil, errors.New("the database URL does not start with mysql://")
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
		switch {
		case len(all) != 1:
			return errors.New("the database URL has a parameter more than once")
		case slices.Contains(transport, key):
			t.tls[key] = all[0]
		case key == "socket" && filepath.IsAbs(all[0]) && u.Hostname() == "":
			t.Socket = filepath.Clean(all[0])
		case key == "socket":
			return errors.New("the parameter socket of the database URL takes an absolute path, and no host beside it")
		default:
			return errors.New("the database URL has a parameter that is not supported; tls, ssl-ca, ssl-cert, ssl-key and socket are")
		}
	}
	return nil
}

func (t *Target) readEndpoint(u *url.URL) error {
	t.Database = strings.TrimPrefix(u.Path, "/")
	if t.Socket != "" {
		return nil
	}
	if strings.Contains(u.Host, ",") {
		return errors.New("the database URL names several hosts; name the one endpoint that takes writes")
	}
	t.Host = strings.ToLower(u.Hostname())
	t.Port = 3306
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
	return nil
}

// systemDatabases belong to the server.
var systemDatabases = []string{"mysql", "information_schema", "performance_schema", "sys"}

func (t *Target) check() error {
	switch {
	case t.Host == "" && t.Socket == "":
		return errors.New("the database URL has no host")
	case t.User == "":
		return errors.New("the database URL has no user")
	case t.Database == "" || strings.ContainsAny(t.Database, "/\x00"):
		return errors.New("the database URL has no database after the host, or one with a slash; " + form)
	case slices.Contains(systemDatabases, strings.ToLower(t.Database)):
		return errors.New("the database URL names a database that belongs to the server itself")
	case strings.ContainsRune(t.User+t.password+t.Host, 0):
		return errors.New("the database URL holds a NUL byte")
	case (t.tls["ssl-cert"] == "") != (t.tls["ssl-key"] == ""):
		return errors.New("the parameters ssl-cert and ssl-key of the database URL belong together")
	}
	mode := t.mode()
	if !slices.Contains(modes, mode) {
		return fmt.Errorf("the parameter tls of the database URL is not one of %s", strings.Join(modes, ", "))
	}
	if (mode == "false" || mode == "preferred") && len(t.tls) > 1 {
		return errors.New("the database URL names certificates and does not ask for an encrypted connection; add tls=true")
	}
	return nil
}

func (t *Target) mode() string {
	if mode, ok := t.tls["tls"]; ok {
		return mode
	}
	if len(t.tls) > 0 {
		return "true"
	}
	return "preferred"
}

// Identity returns the digest of everything that says which database is meant and how it is reached, without the
// password. Default values and their spelled-out forms have one digest.
func (t *Target) Identity() string {
	// A struct gives one order of fields; the version lets a later form differ on purpose.
	data, err := json.Marshal(struct {
		Version  int    `json:"version"`
		Engine   string `json:"engine"`
		Host     string `json:"host"`
		Port     uint16 `json:"port"`
		Socket   string `json:"socket"`
		Database string `json:"database"`
		User     string `json:"user"`
		TLS      string `json:"tls"`
		SSLCA    string `json:"sslCA"`
		SSLCert  string `json:"sslCert"`
		SSLKey   string `json:"sslKey"`
	}{1, report.DialectMySQL, t.Host, t.Port, t.Socket, t.Database, t.User, t.mode(), t.tls["ssl-ca"], t.tls["ssl-cert"], t.tls["ssl-key"]})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return report.Digest(data)
}

// Config returns the configuration of one connection. timeout bounds the connection attempt; zero means none.
func (t *Target) Config(timeout time.Duration) (*mysql.Config, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = t.User, t.password, t.Database
	config.Timeout = timeout
	config.Logger = &mysql.NopLogger{}
	if t.Socket != "" {
		config.Net, config.Addr = "unix", t.Socket
		return config, nil
	}
	config.Net, config.Addr = "tcp", net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
	switch mode := t.mode(); mode {
	case "false":
		config.TLSConfig = "false"
	case "preferred":
		config.TLSConfig = "preferred"
	default:
		encrypted, err := t.encrypted(mode)
		if err != nil {
			return nil, err
		}
		config.TLS = encrypted
	}
	return config, nil
}

func (t *Target) encrypted(mode string) (*tls.Config, error) {
	config := &tls.Config{ServerName: t.Host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: mode == "skip-verify"}
	if file := t.tls["ssl-ca"]; file != "" {
		data, err := os.ReadFile(filepath.Clean(file))
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, errors.New("the file of the parameter ssl-ca of the database URL cannot be read or holds no certificate")
		}
	}
	if file := t.tls["ssl-cert"]; file != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Clean(file), filepath.Clean(t.tls["ssl-key"]))
		if err != nil {
			return nil, errors.New("the files of the parameters ssl-cert and ssl-key of the database URL cannot be read or are no pair")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Connect opens one session and prepares it. The error has a code.
func Connect(ctx context.Context, t *Target, timeout, lockTimeout time.Duration) (*Session, error) {
	config, err := t.Config(timeout)
	if err != nil {
		return nil, failure.New(report.CodeInvalidInput, err.Error())
	}
	return Open(ctx, config, lockTimeout)
}
