// Google's in-memory emulator of Bigtable, as a program. It prints the address it listens on and runs until it is killed.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	flag.Parse()
	server, err := bttest.NewServer(*address, grpc.MaxRecvMsgSize(256<<20), grpc.MaxSendMsgSize(256<<20))
	if err != nil {
		log.Fatal(err)
	}
	log.SetOutput(io.Discard)
	fmt.Println(server.Addr)
	select {}
}
