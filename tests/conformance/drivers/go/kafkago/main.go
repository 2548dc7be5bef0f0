// segmentio kafka-go.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"conformance/contract"

	"github.com/segmentio/kafka-go"
)

type driver struct {
	order  contract.Order
	reader *kafka.Reader
	last   map[string]kafka.Message
}

func (d *driver) Join(order contract.Order) error {
	d.order = order
	return d.Subscribe(order.Topics)
}

func (d *driver) Subscribe(topics []string) error {
	if d.reader != nil {
		if err := d.reader.Close(); err != nil {
			return err
		}
	}
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	config := kafka.ReaderConfig{
		Brokers:                strings.Split(d.order.Bootstrap, ","),
		GroupID:                d.order.Group,
		GroupTopics:            topics,
		GroupBalancers:         []kafka.GroupBalancer{balancers[d.order.Assignor]},
		SessionTimeout:         contract.Ms(d.order.SessionTimeoutMs),
		HeartbeatInterval:      contract.Ms(d.order.HeartbeatIntervalMs),
		RebalanceTimeout:       contract.Ms(d.order.RebalanceTimeoutMs),
		StartOffset:            kafka.FirstOffset,
		MaxWait:                500 * time.Millisecond,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: 2 * time.Second,
		Dialer:                 &kafka.Dialer{ClientID: d.order.ClientID, Timeout: 5 * time.Second},
		ErrorLogger:            kafka.LoggerFunc(func(string, ...any) {}),
	}
	if d.order.Commits == "auto" || d.order.Commits == "async" {
		config.CommitInterval = time.Second
	}
	d.last = map[string]kafka.Message{}
	d.reader = kafka.NewReader(config)
	return nil
}

func (d *driver) Poll() error {
	ctx, cancel := context.WithTimeout(context.Background(), contract.Poll)
	defer cancel()
	message, err := d.reader.FetchMessage(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		time.Sleep(contract.Poll)
		return err
	}
	if d.order.Commits == "auto" {
		return d.reader.CommitMessages(context.Background(), message)
	}
	d.last[message.Topic+string(rune(message.Partition))] = message
	return nil
}

func (d *driver) Block(length time.Duration) { time.Sleep(length) }

func (d *driver) Commit(string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	messages := make([]kafka.Message, 0, len(d.last))
	for _, message := range d.last {
		messages = append(messages, message)
	}
	d.last = map[string]kafka.Message{}
	if len(messages) == 0 {
		return nil
	}
	return d.reader.CommitMessages(ctx, messages...)
}

func (d *driver) Leave() error { return d.reader.Close() }

func (d *driver) Close() error { return d.reader.Close() }

func main() { contract.Run(&driver{}) }
