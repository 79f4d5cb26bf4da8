// The other side of `examples/sctp_peer.rs`, on pion: the same messages, judged the same way, over UDP (RFC 6951).
//
//	peer serve ADDRESS PORT OWN-UDP PEER-UDP echo|discard
//	peer send  ADDRESS PORT OWN-UDP PEER-UDP echo PEER OCTETS STREAMS MESSAGE
//
// pion takes whatever ports the peer's packets have, and answers where they come from.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	front = 10
	most  = 65536
)

// peer is a UDP socket that speaks with whoever spoke to it last.
type peer struct {
	*net.UDPConn
	lock sync.Mutex
	at   *net.UDPAddr
}

func (p *peer) Read(octets []byte) (int, error) {
	n, from, err := p.ReadFromUDP(octets)
	if err == nil {
		p.lock.Lock()
		p.at = from
		p.lock.Unlock()
	}
	return n, err
}

func (p *peer) Write(octets []byte) (int, error) {
	p.lock.Lock()
	to := p.at
	p.lock.Unlock()
	return p.WriteToUDP(octets, to)
}

func (p *peer) RemoteAddr() net.Addr {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.at
}

type tally struct {
	sync.Mutex
	messages, octets, wrong uint64
	streams                 int
}

func (t *tally) say(role string) {
	fmt.Printf("{\"role\":\"%s\",\"messages\":%d,\"octets\":%d,\"streams\":%d,\"wrong\":%d,\"changes\":[0,0,0,0],\"end\":\"finished\"}\n",
		role, t.messages, t.octets, t.streams, t.wrong)
}

func right(stream uint16, number uint32, length int) []byte {
	octets := make([]byte, length)
	binary.BigEndian.PutUint16(octets, stream)
	binary.BigEndian.PutUint32(octets[2:], number)
	binary.BigEndian.PutUint32(octets[6:], uint32(length))
	for i := front; i < length; i++ {
		octets[i] = byte(uint32(i) + uint32(stream) + number)
	}
	return octets
}

// serve judges the messages of a stream, which have to be in their order, until its end.
func serve(stream *sctp.Stream, echo bool, all *tally) {
	octets := make([]byte, most)
	for number := uint32(0); ; number++ {
		n, kind, err := stream.ReadSCTP(octets)
		if err != nil {
			return
		}
		all.Lock()
		if number == 0 {
			all.streams++
		}
		all.messages++
		all.octets += uint64(n)
		if n < front || !bytes.Equal(octets[:n], right(stream.StreamIdentifier(), number, n)) {
			all.wrong++
		}
		all.Unlock()
		if echo {
			// Zero stands for no protocol in what is sent here, as in what has come.
			if _, err := stream.WriteSCTP(octets[:n], kind); err != nil {
				all.Lock()
				all.wrong++
				all.Unlock()
				return
			}
		}
	}
}

func run(address, udp string, echo bool) error {
	at, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(address, udp))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", at)
	if err != nil {
		return err
	}
	association, err := sctp.Server(sctp.Config{
		NetConn:       &peer{UDPConn: socket},
		LoggerFactory: logging.NewDefaultLoggerFactory(),
	})
	if err != nil {
		return err
	}
	var all tally
	var serving sync.WaitGroup
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		serving.Add(1)
		go func() {
			defer serving.Done()
			serve(stream, echo, &all)
		}()
	}
	serving.Wait()
	all.say("server")
	return nil
}

// send sends the octets in messages, on one stream after the other, and judges what comes back of them.
func send(address, own, theirs, server string, octets, streams, length int) error {
	at, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(address, own))
	if err != nil {
		return err
	}
	to, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(server, theirs))
	if err != nil {
		return err
	}
	socket, err := net.DialUDP("udp4", at, to)
	if err != nil {
		return err
	}
	association, err := sctp.Client(sctp.Config{NetConn: socket, LoggerFactory: logging.NewDefaultLoggerFactory()})
	if err != nil {
		return err
	}
	count := (octets + length - 1) / length
	all := tally{streams: streams}
	var reading sync.WaitGroup
	for id := 0; id < streams; id++ {
		id := id
		stream, err := association.OpenStream(uint16(id), 0)
		if err != nil {
			return err
		}
		reading.Add(1)
		go func() {
			defer reading.Done()
			octets := make([]byte, most)
			for i := id; i < count; i += streams {
				n, _, err := stream.ReadSCTP(octets)
				all.Lock()
				all.messages++
				all.octets += uint64(n)
				if err != nil || !bytes.Equal(octets[:n], right(uint16(id), uint32(i/streams), length)) {
					all.wrong++
				}
				all.Unlock()
			}
		}()
		go func() {
			for i := id; i < count; i += streams {
				if _, err := stream.WriteSCTP(right(uint16(id), uint32(i/streams), length), 0); err != nil {
					return
				}
			}
		}()
	}
	reading.Wait()
	all.say("client")
	return association.Shutdown(context.Background())
}

func main() {
	words := os.Args[1:]
	var err error
	switch {
	case len(words) == 6 && words[0] == "serve":
		err = run(words[1], words[3], words[5] == "echo")
	case len(words) == 10 && words[0] == "send" && words[5] == "echo":
		var numbers [3]int
		for i, word := range words[7:] {
			if numbers[i], err = strconv.Atoi(word); err != nil {
				break
			}
		}
		if err == nil {
			err = send(words[1], words[3], words[4], words[6], numbers[0], numbers[1], numbers[2])
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: peer serve|send ADDRESS PORT OWN-UDP PEER-UDP echo|discard [PEER OCTETS STREAMS MESSAGE]")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
