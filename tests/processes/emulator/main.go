// SPDX-License-Identifier: Apache-2.0

// Google's in-memory emulator of Bigtable, as a program. It prints the address it listens on and runs until it is killed.
//
// Debian's version of the emulator is not safe for concurrent requests, in two places. So here no request that changes
// something runs at the same time as another.
//   - SampleRowKeys reads rows without their locks. When another request changes such a row, Go ends the process
//     ("concurrent map iteration and map write").
//   - ReadRows sends from a copy of a row that shares the list of column names with the row, and deleting a cell moves
//     the names in that list: a read may miss a column that exists all the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"sync"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

var requests sync.RWMutex

func alone(ctx context.Context, request interface{}, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (interface{}, error) {
	requests.Lock()
	defer requests.Unlock()
	return handler(ctx, request)
}

// A request with a stream of answers. It holds the lock from the arrival of its one message until it has all answers,
// which are sent after that. So a client that reads slowly, or makes another request in between, delays no other.
type keptStream struct {
	grpc.ServerStream
	lock    sync.Locker
	locked  bool
	answers []interface{}
}

func (s *keptStream) RecvMsg(message interface{}) error {
	err := s.ServerStream.RecvMsg(message)
	if !s.locked {
		s.lock.Lock()
		s.locked = true
	}
	return err
}

func (s *keptStream) SendMsg(message interface{}) error {
	s.answers = append(s.answers, message)
	return nil
}

func streamed(service interface{}, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	kept := &keptStream{ServerStream: stream, lock: requests.RLocker()}
	if info.FullMethod == "/google.bigtable.v2.Bigtable/MutateRows" {
		kept.lock = &requests
	}
	result := handler(service, kept)
	if kept.locked {
		kept.lock.Unlock()
	}
	for _, answer := range kept.answers {
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
	return result
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	flag.Parse()
	server, err := bttest.NewServer(*address, grpc.MaxRecvMsgSize(256<<20), grpc.MaxSendMsgSize(256<<20),
		grpc.UnaryInterceptor(alone), grpc.StreamInterceptor(streamed))
	if err != nil {
		log.Fatal(err)
	}
	log.SetOutput(io.Discard)
	fmt.Println(server.Addr)
	select {}
}
