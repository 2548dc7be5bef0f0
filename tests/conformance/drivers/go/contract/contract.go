// Package contract is what drivers/python/contract.py says of orders and events.
package contract

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"sync"
	"time"
)

const (
	Poll        = 100 * time.Millisecond
	CommitEvery = time.Second
)

// Order is a line of standard input; after "join" it holds the consumer's settings too.
type Order struct {
	Do                  string   `json:"do"`
	Ms                  int      `json:"ms"`
	Bootstrap           string   `json:"bootstrap"`
	Group               string   `json:"group"`
	ClientID            string   `json:"client_id"`
	Topics              []string `json:"topics"`
	Assignor            string   `json:"assignor"`
	Commits             string   `json:"commits"`
	InstanceID          *string  `json:"instance_id"`
	User                string   `json:"user"` // logs in by SCRAM-SHA-512; empty for nobody
	Password            string   `json:"password"`
	CA                  string   `json:"ca"` // a file with the certificate that signs the brokers'; empty for no TLS
	SessionTimeoutMs    int      `json:"session_timeout_ms"`
	HeartbeatIntervalMs int      `json:"heartbeat_interval_ms"`
	RebalanceTimeoutMs  int      `json:"rebalance_timeout_ms"`
	RequestTimeoutMs    int      `json:"request_timeout_ms"` // of sarama alone; 0 for its default
	Release             string   `json:"release"`            // of sarama alone: whose protocol it speaks; empty for the newest
}

// Ms gives milliseconds as a duration.
func Ms(count int) time.Duration { return time.Duration(count) * time.Millisecond }

// TLS trusts the authority of an order; nil if it names none.
func (order Order) TLS() (*tls.Config, error) {
	if order.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(order.CA)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: trusted}, nil
}

// Driver is one library's consumer.
type Driver interface {
	Join(Order) error
	Subscribe(topics []string) error
	Poll() error
	Block(time.Duration)
	Commit(how string) error
	Leave() error
	Close() error
}

var mutex sync.Mutex

// Tell writes an event.
func Tell(event string, details map[string]any) {
	line := map[string]any{"event": event}
	for name, value := range details {
		line[name] = value
	}
	text, _ := json.Marshal(line)
	mutex.Lock()
	defer mutex.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// Partitions tells how many partitions were assigned or revoked.
func Partitions(event string, topics map[string][]int32) {
	count := 0
	for _, partitions := range topics {
		count += len(partitions)
	}
	Tell(event, map[string]any{"partitions": count})
}

// Failed tells of an error.
func Failed(err error) {
	if err != nil {
		Tell("failed", map[string]any{"error": err.Error()})
	}
}

// Run does what is ordered, and polls and commits between.
func Run(driver Driver) {
	orders := make(chan Order, 16)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var order Order
			if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
				panic(err)
			}
			orders <- order
		}
		os.Exit(1) // the parent is gone
	}()
	Tell("started", nil)
	how, joined, committed := "auto", false, time.Now()
	for {
		order := Order{Do: "poll"}
		if joined {
			select {
			case order = <-orders:
			default:
			}
		} else {
			order = <-orders
		}
		switch order.Do {
		case "poll":
			Failed(driver.Poll())
			if how != "auto" && time.Since(committed) >= CommitEvery {
				committed = time.Now()
				Failed(driver.Commit(how))
			}
		case "join":
			how, joined = order.Commits, true
			Failed(driver.Join(order))
		case "subscribe":
			joined = true
			Failed(driver.Subscribe(order.Topics))
		case "block":
			driver.Block(Ms(order.Ms))
		case "commit":
			Failed(driver.Commit("sync"))
			Tell("committed", nil)
		case "leave":
			joined = false
			Failed(driver.Leave())
			Tell("left", nil)
		case "close":
			Failed(driver.Close())
			Tell("closed", nil)
			os.Exit(0)
		}
	}
}
