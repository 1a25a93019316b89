package secretscan

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"unicode/utf8"
)

// eachLine calls visit with every line that holds the mark, and its offset.
func eachLine(text []byte, mark byte, visit func(at int, line []byte)) {
	for at := 0; at < len(text); {
		next := bytes.IndexByte(text[at:], mark)
		if next < 0 {
			return
		}
		begin := bytes.LastIndexByte(text[:at+next], '\n') + 1
		end := len(text)
		if length := bytes.IndexByte(text[at+next:], '\n'); length >= 0 {
			end = at + next + length
		}
		visit(begin, text[begin:end])
		at = end + 1
	}
}

// escapes scans quoted strings with backslashes in them, as JSON, YAML, Go and most logs write them. A line that is
// not in the form of strings is scanned once more as a whole with its escapes resolved.
func (j *job) escapes(v *view) {
	eachLine(v.text, '\\', func(at int, line []byte) {
		whole, start, escaped := false, -1, false
		for i := 0; i < len(line); i++ {
			switch {
			case line[i] == '\\':
				whole = whole || start < 0
				escaped = true
				i++
			case line[i] == '"' && start < 0:
				start, escaped = i+1, false
			case line[i] == '"':
				if escaped {
					j.derive(v, at+start, "string", unescape(line[start:i]))
				}
				start = -1
			}
		}
		if whole || start >= 0 {
			if resolved := unescape(line); len(resolved) < len(line) { // not where a line just ends in a backslash
				j.derive(v, at, "escaped text", resolved)
			}
		}
	})
}

var simpleEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '0': 0, 'a': '\a', 'v': '\v', 'e': 0x1b}

// unescape resolves one level of backslashes and takes whatever follows a backslash that means nothing as itself.
func unescape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		if digits > 0 && i+digits < len(text) {
			if value, err := strconv.ParseUint(string(text[i+1:i+1+digits]), 16, 32); err == nil {
				if digits == 2 {
					out = append(out, byte(value))
				} else {
					out = utf8.AppendRune(out, rune(value))
				}
				i += digits
				continue
			}
		}
		if plain, ok := simpleEscapes[text[i]]; ok {
			out = append(out, plain)
			continue
		}
		out = append(out, text[i])
	}
	return out
}

// Lengths of encoded runs that are looked into.
const (
	shortestBase64 = 16
	shortestHex    = 32
	shiftedBase64  = 24 // shortest run that is also read from its second to fourth character on
	wrappedLine    = 60 // shortest line after which base64 is taken to go on in the next
	opaqueBinary   = 64 // shortest decoded binary that is scanned although it is no text
)

var (
	base64Alphabet = alphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
	hexAlphabet    = alphabet("0123456789abcdefABCDEF")
)

func alphabet(characters string) (set [256]bool) {
	for _, c := range []byte(characters) {
		set[c] = true
	}
	return set
}

// runs decodes every run of characters that may be base64 or hexadecimal.
func (j *job) runs(v *view) {
	for at := 0; at < len(v.text); {
		if !base64Alphabet[v.text[at]] {
			at++
			continue
		}
		run, end := collectRun(v.text, at)
		if len(run) >= shortestBase64 {
			j.base64(v, at, run)
		}
		if len(run) >= shortestHex {
			j.hex(v, at, run)
		}
		at = end
	}
}

// collectRun returns the run that begins at an offset and where it ends. Lines of wrapped base64 are joined.
func collectRun(text []byte, at int) (run []byte, end int) {
	end = endOfRun(text, at)
	run = text[at:end]
	joined := false
	for lineLength := end - at; lineLength >= wrappedLine; {
		next := end
		if next < len(text) && text[next] == '\r' {
			next++
		}
		if next >= len(text) || text[next] != '\n' {
			break
		}
		for next++; next < len(text) && (text[next] == ' ' || text[next] == '\t'); next++ {
		}
		last := endOfRun(text, next)
		if last == next {
			break
		}
		if !joined {
			run, joined = bytes.Clone(run), true
		}
		run = append(run, text[next:last]...)
		lineLength, end = last-next, last
	}
	return run, end
}

func endOfRun(text []byte, at int) int {
	for at < len(text) && base64Alphabet[text[at]] {
		at++
	}
	return at
}

// base64 looks into a run, from each of its first four characters: what stands before encoded text, such as a path,
// may be of the same alphabet.
func (j *job) base64(v *view, at int, run []byte) {
	standard := run
	if bytes.ContainsAny(run, "-_") {
		standard = bytes.ReplaceAll(bytes.ReplaceAll(run, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
	}
	for shift := range 4 {
		if shift > 0 && len(run) < shiftedBase64 {
			return
		}
		encoded := standard[shift:]
		if len(encoded)%4 == 1 {
			encoded = encoded[:len(encoded)-1]
		}
		decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(encoded)))
		n, err := base64.RawStdEncoding.Decode(decoded, encoded)
		if err != nil {
			continue
		}
		if j.decoded(v, at, "base64", decoded[:n], shift == 0) {
			return
		}
	}
}

func (j *job) hex(v *view, at int, run []byte) {
	for _, c := range run {
		if !hexAlphabet[c] {
			return
		}
	}
	decoded := make([]byte, len(run)/2)
	if _, err := hex.Decode(decoded, run[:len(run)/2*2]); err == nil {
		j.decoded(v, at, "hexadecimal", decoded, true)
	}
}

// decoded looks into bytes that may or may not mean something, and says whether they do.
func (j *job) decoded(v *view, at int, step string, data []byte, first bool) bool {
	if first {
		j.scanner.known.find(data, func(int) { j.found(v, at, KnownSecret) })
		if isPrivateKey(data) {
			j.found(v, at, PrivateKey)
			return true
		}
	}
	switch kind, _ := sniff(data); {
	case kind != formatText:
		if j.spend(int64(len(data))) {
			// Nothing that is read from memory fails but what is inside of it, and that is no promise here.
			_ = j.stream(bufio.NewReader(bytes.NewReader(data)), join(v.at(at), step), v.depth+1, false)
		}
		return false
	case readable(data):
		j.derive(v, at, step, data)
		return true
	case first && len(data) >= opaqueBinary:
		j.derive(v, at, step, data)
	}
	return false
}

// readable says whether decoded bytes are mostly text.
func readable(data []byte) bool {
	plain := 0
	for _, c := range data {
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			plain++
		}
	}
	return plain*100 >= len(data)*80
}

// isPrivateKey says whether bytes are a private key in DER. Public keys and certificates are none.
func isPrivateKey(der []byte) bool {
	if len(der) < 40 || der[0] != 0x30 {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return true
	}
	if _, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return true
	}
	_, err := x509.ParseECPrivateKey(der)
	return err == nil
}

// percent scans lines with percent-encoding in them once more, decoded.
func (j *job) percent(v *view) {
	eachLine(v.text, '%', func(at int, line []byte) {
		out, changed := make([]byte, 0, len(line)), false
		for i := 0; i < len(line); i++ {
			if line[i] == '%' && i+2 < len(line) && hexAlphabet[line[i+1]] && hexAlphabet[line[i+2]] {
				value, _ := strconv.ParseUint(string(line[i+1:i+3]), 16, 8)
				out, changed = append(out, byte(value)), true
				i += 2
				continue
			}
			out = append(out, line[i])
		}
		if changed {
			j.derive(v, at, "percent-encoded text", out)
		}
	})
}

// entities scans lines with HTML entities in them once more, decoded.
func (j *job) entities(v *view) {
	eachLine(v.text, '&', func(at int, line []byte) {
		if bytes.IndexByte(line, ';') < 0 {
			return
		}
		if decoded := html.UnescapeString(string(line)); decoded != string(line) {
			j.derive(v, at, "HTML text", []byte(decoded))
		}
	})
}
