package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// rule finds one form of credential. Its expression runs only near one of the triggers, which are lower-case.
type rule struct {
	triggers []string
	before   int // bytes before a trigger that a match may begin at
	after    int // bytes after a trigger that a match may end at
	match    *regexp.Regexp
	judge    func(groups []string) Kind // what the match is, nothing where it is harmless; groups[0] is the match

	// near is a cheap look at what stands before and after a trigger, where that says that nothing can match.
	near func(before, after []byte) bool
}

func always(kind Kind) func([]string) Kind { return func([]string) Kind { return kind } }

// password takes the last group that matched as the password.
func password(kind Kind) func([]string) Kind {
	return func(groups []string) Kind {
		if value := lastGroup(groups); placeholder(value) {
			return ""
		}
		return kind
	}
}

func lastGroup(groups []string) string {
	for i := len(groups) - 1; i > 0; i-- {
		if groups[i] != "" {
			return groups[i]
		}
	}
	return ""
}

var rules = []rule{
	{[]string{"private key"}, 64, 64, regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----`), always(PrivateKey), nil},
	{[]string{"putty-user-key-file-"}, 0, 64, regexp.MustCompile(`PuTTY-User-Key-File-\d`), always(PrivateKey), nil},
	{[]string{"age-secret-key-"}, 0, 128, regexp.MustCompile(`(?i)AGE-SECRET-KEY-(?:[A-Z]+-)?1[A-Z0-9]{20,}`), always(AgeIdentity), nil},
	{[]string{"eyj"}, 0, 16 << 10, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{8,}`), signedToken, nil},
	{[]string{"bearer"}, 8, 256, regexp.MustCompile(`(?i)\bbearer["']?[ \t:=,]+["']?([A-Za-z0-9._~+/=-]{12,})`), bearer, nil},
	{[]string{"basic"}, 8, 512, regexp.MustCompile(`(?i)\bbasic[ \t]+([A-Za-z0-9+/_-]{6,}={0,2})`), func(groups []string) Kind { return userAndPassword(groups[1], Authorization) }, nil},
	{[]string{"://"}, 40, 512, regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]{0,30})://[^\\s:/?#@\"'<>`]{0,128}:([^\\s/@\"'<>`]{1,256})@"), addressed, nil},
	{[]string{"@tcp(", "@unix(", "@tcp6("}, 200, 8, regexp.MustCompile(`[^\s:@/"']{1,64}:([^\s"']{1,128})@(?:tcp6?|unix)\(`), password(DatabaseURL), nil},
	{[]string{"password '", "password e'", "identified", "password = '"}, 16, 300, regexp.MustCompile(`(?i)\bpassword\s+(?:=\s*)?e?'((?:[^'\\]|''|\\.){1,200})'|\bidentified\s+(?:with\s+\S{1,60}\s+)?(?:by|as)\s+(?:password\s+)?['"]([^'"]{1,200})['"]`), password(Password), nil},
	{[]string{"scram-sha-256$"}, 0, 300, regexp.MustCompile(`SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{16,}`), always(PasswordHash), nil},
	{[]string{"$2a$", "$2b$", "$2y$", "$2x$"}, 0, 80, regexp.MustCompile(`\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}`), always(PasswordHash), nil},
	{[]string{"$6$", "$5$", "$y$", "$argon2", "$a$005$", "$apr1$"}, 0, 300, regexp.MustCompile(`\$(?:5|6|y|argon2id?|argon2i|A\$005|apr1)\$[^\s"']{20,}`), always(PasswordHash), nil},
	{keyWords, 64, 640, keyed, keyedValue, assigned},
	{keyWords, 200, 640, variable, password(Password), listed},
	{keyWords, 40, 300, option, optionValue, dashed},
	{[]string{"auth\"", "auth:", "auth'"}, 2, 700, regexp.MustCompile(`["']?\bauth["']?\s*:\s*["']?([A-Za-z0-9+/_-]{6,}={0,2})`), func(groups []string) Kind { return userAndPassword(groups[1], RegistryAuth) }, nil},
	{[]string{"akia", "asia", "abia", "acca"}, 1, 32, regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`), always(CloudKey), nil},
	{[]string{"aiza", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxr-", "sk_live_", "rk_live_", "npm_", "sk-ant-", "sk-proj-", "dckr_pat_", "hooks.slack.com/services/"}, 1, 128,
		regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bgh[opusr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{18,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\b[sr]k_live_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{36}|\bsk-(?:ant|proj)-[A-Za-z0-9_-]{20,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}`), always(CloudKey), nil},
}

// The names under which passwords, tokens and keys stand.
var (
	keyWords = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "secretkey", "secret_key", "accountkey", "privatekey", "private_key", "credential"}
	keyed    = regexp.MustCompile(`(?i)([A-Za-z0-9_.-]{0,60}(?:password|passwd|passphrase|secret|token|credentials?|(?:api|access|secret|account|private)[_-]?key))["']?[ \t]*(?:=>|:=|[:=])[ \t]*(?:"((?:[^"\\\n]|\\.){1,512})"|'([^'\n]{1,512})'|([^\s"',;&{}\[\]()]{1,256}))`)
	variable = regexp.MustCompile(`(?i)name["']?\s*:\s*["']?[A-Za-z0-9_.-]{0,60}(?:password|passwd|passphrase|token|secret|(?:api|access|secret|account)_?key)["']?\s*,?\s*["']?value["']?\s*:\s*(?:"([^"\n]{1,512})"|([^\s,}"]{1,256}))`)
	option   = regexp.MustCompile(`(?i)--?[a-z-]{0,30}(password|passwd|passphrase|token|secret|api-key|access-key|secret-key|certificate-key)["']?(?:[ \t]*=[ \t]*|[ \t]+|[ \t]*,[ \t]*)["']?([^\s"',\]]{4,256})`)
)

// assigned says whether a word can be a name that something is assigned to.
func assigned(_, after []byte) bool {
	rest := bytes.TrimLeft(bytes.TrimLeft(after, "sS"), "\"' \t")
	return len(rest) > 0 && (rest[0] == ':' || rest[0] == '=')
}

// listed says whether a word can be the name of a variable whose value comes next.
func listed(before, after []byte) bool {
	rest := bytes.TrimLeft(after, "\"', \t\r\n")
	return bytes.HasPrefix(rest, []byte("value")) && bytes.Contains(before, []byte("name"))
}

// dashed says whether a word can be an option of a command line.
func dashed(before, after []byte) bool {
	at := bytes.LastIndexByte(before, '-')
	return at >= 0 && len(after) > 0 && bytes.IndexByte([]byte(" \t=,\"'"), after[0]) >= 0 && !bytes.ContainsAny(before[at:], " \t\n")
}

// addressed tells a password in the address of a database from one in another address.
func addressed(groups []string) Kind {
	if placeholder(groups[2]) {
		return ""
	}
	scheme := strings.ToLower(groups[1])
	for _, engine := range []string{"postgres", "pgsql", "mysql", "mariadb", "mongodb", "redis", "sqlserver", "oracle", "cockroach", "clickhouse", "amqp"} {
		if strings.Contains(scheme, engine) {
			return DatabaseURL
		}
	}
	return URLPassword
}

// signedToken admits three parts of which the first is no header of a token.
func signedToken(groups []string) Kind {
	head, _, _ := strings.Cut(groups[0], ".")
	decoded, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	var header map[string]any
	if json.Unmarshal(decoded, &header) != nil || header["alg"] == nil {
		return ""
	}
	return Token
}

func bearer(groups []string) Kind {
	if placeholder(groups[1]) || !random(groups[1]) {
		return ""
	}
	return Authorization
}

// userAndPassword looks into base64 for "user:password".
func userAndPassword(encoded string, kind Kind) Kind {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(encoded), "="))
	if err != nil || !readable(decoded) {
		return ""
	}
	_, secret, ok := strings.Cut(string(decoded), ":")
	if !ok || placeholder(secret) {
		return ""
	}
	return kind
}

// keyedValue judges a value by the name it stands under. A word under such a name is often a reference or a sentence,
// so a value without quotes has to look like a credential.
func keyedValue(groups []string) Kind {
	key, value, quoted := strings.ToLower(groups[1]), lastGroup(groups[1:]), groups[4] == ""
	if placeholder(value) || strings.HasPrefix(value, "sha256:") {
		return ""
	}
	for _, word := range []string{"password", "passwd", "passphrase"} {
		if strings.HasSuffix(key, word) {
			if len(value) >= 4 && (quoted && !strings.Contains(value, " ") || mixed(value)) {
				return Password
			}
			return ""
		}
	}
	if random(value) || bootstrapToken.MatchString(value) {
		return APIKey
	}
	return ""
}

var bootstrapToken = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// optionValue judges the value of a command line option.
func optionValue(groups []string) Kind {
	name, value := strings.ToLower(groups[1]), groups[2]
	switch {
	case placeholder(value), strings.HasPrefix(value, "-"), strings.HasPrefix(value, "/"):
		return ""
	case strings.HasPrefix(name, "pass") && mixed(value):
		return Password
	case random(value), bootstrapToken.MatchString(value):
		return APIKey
	}
	return ""
}

// mixed says whether a value holds letters and something else, as passwords do and most words do not.
func mixed(value string) bool {
	letters := strings.ContainsFunc(value, letter)
	others := strings.ContainsFunc(value, func(r rune) bool { return !letter(r) && r != '-' && r != '.' && r != ':' })
	return len(value) >= 6 && letters && others
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

var uid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// random says whether a value looks made by a machine: 16 characters or more without a space, letters and digits.
func random(value string) bool {
	digits := strings.ContainsFunc(value, func(r rune) bool { return r >= '0' && r <= '9' })
	return len(value) >= 16 && digits && strings.ContainsFunc(value, letter) && !strings.ContainsAny(value, " /") && !uid.MatchString(value)
}

// harmless are values that stand where a credential would, and are none.
var harmless = map[string]bool{"null": true, "nil": true, "none": true, "true": true, "false": true, "string": true, "required": true, "optional": true,
	"password": true, "passwd": true, "secret": true, "token": true, "hidden": true, "omitted": true, "unset": true, "empty": true, "undefined": true, "[]byte": true}

// placeholder says whether a value stands for a credential and is none: a reference to a variable, a mark of redaction.
func placeholder(value string) bool {
	value = strings.TrimSpace(value)
	lower := strings.ToLower(value)
	switch {
	case value == "", harmless[lower], strings.Contains(lower, "redacted"):
		return true
	case strings.Trim(value, "*") == "", strings.Trim(lower, "x") == "", strings.Trim(value, ".") == "":
		return true
	case strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">"), strings.HasPrefix(value, "{{"):
		return true
	case len(value) == 2 && value[0] == '%':
		return true
	}
	return reference.MatchString(value)
}

var reference = regexp.MustCompile(`^\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\}|\([^)]*\))$`)

// rules runs every rule near its triggers.
func (j *job) rules(v *view) {
	lower := asciiLower(v.text)
	for i := range rules {
		for _, window := range windows(lower, &rules[i]) {
			j.apply(v, &rules[i], window)
		}
	}
}

func (j *job) apply(v *view, r *rule, window [2]int) {
	part := v.text[window[0]:window[1]]
	for _, location := range r.match.FindAllSubmatchIndex(part, -1) {
		groups := make([]string, len(location)/2)
		for i := range groups {
			if location[2*i] >= 0 {
				groups[i] = string(part[location[2*i]:location[2*i+1]])
			}
		}
		if kind := r.judge(groups); kind != "" {
			j.found(v, window[0]+location[0], kind)
		}
	}
}

// windows returns the stretches of text around the triggers of a rule, in order and joined where they overlap.
func windows(lower []byte, r *rule) [][2]int {
	var list [][2]int
	for _, trigger := range r.triggers {
		for at := 0; ; {
			next := bytes.Index(lower[at:], []byte(trigger))
			if next < 0 {
				break
			}
			at += next + len(trigger)
			if r.near != nil && !r.near(lower[max(0, at-len(trigger)-r.before):at-len(trigger)], lower[at:min(len(lower), at+r.after)]) {
				continue
			}
			list = append(list, [2]int{max(0, at-len(trigger)-r.before), min(len(lower), at+r.after)})
		}
	}
	slices.SortFunc(list, func(a, b [2]int) int { return a[0] - b[0] })
	joined := list[:0]
	for _, window := range list {
		if last := len(joined) - 1; last >= 0 && window[0] <= joined[last][1] {
			joined[last][1] = max(joined[last][1], window[1])
		} else {
			joined = append(joined, window)
		}
	}
	return joined
}

// asciiLower lowers A to Z and keeps every offset.
func asciiLower(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}
