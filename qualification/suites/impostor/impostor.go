// Package impostor is a database server of another authority: it speaks the beginning of a protocol, up to the point
// where a client that trusts it would say who it is, and counts what clients say. It has no database and knows no
// password; it exists so that "nothing was sent" can be read at the other end.
package impostor

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/trust"
)

// patience bounds each step of a conversation.
const patience = 20 * time.Second

// Record is what clients did so far.
type Record struct {
	Connections int `json:"connections"`
	Refused     int `json:"refused"` // by the client, on account of the certificate
	Spoken      int `json:"spoken"`  // connections on which the client went on and said something
}

// Server is an impostor that listens.
type Server struct {
	listener net.Listener
	config   *tls.Config
	greet    func(net.Conn) error

	mutex  sync.Mutex
	record Record
	heard  [][]byte
	done   sync.WaitGroup
}

// greetings lead to the point at which a client begins its TLS handshake.
var greetings = map[string]func(net.Conn) error{lab.PostgreSQL: greetPostgreSQL, lab.MySQL: greetMySQL}

// Start listens on an address of this machine, on a free port, with a certificate for that address from an authority
// that was made for it and that nobody knows.
func Start(address, engine string) (*Server, error) {
	greet, known := greetings[engine]
	if !known {
		return nil, fmt.Errorf("start an impostor: no protocol of the engine %q is known", engine)
	}
	authority, err := trust.NewAuthority("nobody knows this authority", time.Now())
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Server(time.Now(), address)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("start an impostor: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("start an impostor: %w", err)
	}
	s := &Server{listener: listener, greet: greet, config: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}
	s.done.Add(1)
	go s.serve()
	return s, nil
}

// Address is host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Record returns what clients did so far.
func (s *Server) Record() Record {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.record
}

// Heard says whether a client said a word inside an encrypted connection.
func (s *Server) Heard(word string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, said := range s.heard {
		if bytes.Contains(said, []byte(word)) {
			return true
		}
	}
	return false
}

// Close ends the server and waits for its conversations.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.done.Wait()
	return err
}

func (s *Server) serve() {
	defer s.done.Done()
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return // it was closed
		}
		s.count(func(r *Record) { r.Connections++ })
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			defer func() { _ = connection.Close() }() // the client may have closed it
			s.talk(connection)
		}()
	}
}

func (s *Server) count(change func(*Record)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.record)
}

// talk leads one conversation. A client that refuses the certificate may do so after the handshake is over for the
// server, so that it is told from one that goes on by what it sends then.
func (s *Server) talk(connection net.Conn) {
	_ = connection.SetDeadline(time.Now().Add(patience)) // a client that hangs is given up
	if err := s.greet(connection); err != nil {
		return
	}
	encrypted := tls.Server(connection, s.config)
	said := make([]byte, 4096)
	n, err := encrypted.Read(said) // the handshake is part of it
	if n > 0 {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.record.Spoken++
		s.heard = append(s.heard, said[:n])
		return
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		s.count(func(r *Record) { r.Refused++ })
	}
}

// greetPostgreSQL answers the request for encryption with yes.
func greetPostgreSQL(connection net.Conn) error {
	request := make([]byte, 8)
	if _, err := io.ReadFull(connection, request); err != nil {
		return fmt.Errorf("read the request for encryption: %w", err)
	}
	if !bytes.Equal(request, []byte{0, 0, 0, 8, 4, 210, 22, 47}) {
		return errors.New("the client did not ask for encryption")
	}
	_, err := connection.Write([]byte("S"))
	return err
}

// Capabilities of the MySQL protocol that the impostor offers: long passwords, a database at once, the protocol since
// 4.1, TLS, and named authentication plugins.
const capabilities = 0x1 | 0x8 | 0x200 | 0x800 | 0x8000 | 0x80000

// greetMySQL greets as a server does, and reads the short packet by which a client asks for encryption.
func greetMySQL(connection net.Conn) error {
	greeting := append([]byte{10}, "9.7.0\x00"...)
	greeting = append(greeting, 1, 0, 0, 0)    // connection
	greeting = append(greeting, "12345678"...) // first part of the challenge
	greeting = append(greeting, 0)             // filler
	greeting = append(greeting, capabilities&0xff, capabilities>>8&0xff)
	greeting = append(greeting, 255)  // utf8mb4
	greeting = append(greeting, 2, 0) // autocommit
	greeting = append(greeting, capabilities>>16&0xff, 0)
	greeting = append(greeting, 21) // length of the challenge
	greeting = append(greeting, make([]byte, 10)...)
	greeting = append(greeting, "123456789012\x00"...)
	greeting = append(greeting, "caching_sha2_password\x00"...)
	if _, err := connection.Write(append([]byte{byte(len(greeting)), 0, 0, 0}, greeting...)); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	header := make([]byte, 4)
	if _, err := io.ReadFull(connection, header); err != nil {
		return fmt.Errorf("read the request for encryption: %w", err)
	}
	const requestLength = 32
	if int(header[0])|int(header[1])<<8|int(header[2])<<16 != requestLength {
		return errors.New("the client did not ask for encryption")
	}
	_, err := io.ReadFull(connection, make([]byte, requestLength))
	return err
}
