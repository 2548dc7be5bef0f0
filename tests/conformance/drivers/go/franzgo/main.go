// franz-go.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"conformance/contract"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type driver struct {
	order   contract.Order
	client  *kgo.Client
	session *kgo.GroupTransactSession
}

func (d *driver) Join(order contract.Order) error {
	d.order = order
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(order.Bootstrap, ",")...),
		kgo.ClientID(order.ClientID),
		kgo.ConsumerGroup(order.Group),
		kgo.ConsumeTopics(order.Topics...),
		kgo.SessionTimeout(contract.Ms(order.SessionTimeoutMs)),
		kgo.HeartbeatInterval(contract.Ms(order.HeartbeatIntervalMs)),
		kgo.RebalanceTimeout(contract.Ms(order.RebalanceTimeoutMs)),
		kgo.Balancers(balancers[order.Assignor]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMaxAge(2 * time.Second),
		kgo.MetadataMinAge(time.Second),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			contract.Partitions("assigned", given)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			contract.Partitions("revoked", taken)
		}),
	}
	if trusted, err := order.TLS(); err != nil {
		return err
	} else if trusted != nil {
		options = append(options, kgo.DialTLSConfig(trusted))
	}
	if order.User != "" {
		options = append(options, kgo.SASL(scram.Auth{User: order.User, Pass: order.Password}.AsSha512Mechanism()))
	}
	if order.InstanceID != nil {
		options = append(options, kgo.InstanceID(*order.InstanceID))
	}
	switch order.Commits {
	case "auto":
		options = append(options, kgo.AutoCommitInterval(time.Second))
	case "transaction":
		options = append(options, kgo.TransactionalID(order.ClientID), kgo.RequireStableFetchOffsets())
		session, err := kgo.NewGroupTransactSession(options...)
		if err != nil {
			return err
		}
		d.session, d.client = session, session.Client()
		return d.session.Begin()
	default:
		options = append(options, kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(options...)
	d.client = client
	return err
}

func (d *driver) Subscribe(topics []string) error {
	d.client.AddConsumeTopics(topics...)
	return nil
}

func (d *driver) Poll() error {
	ctx, cancel := context.WithTimeout(context.Background(), contract.Poll)
	defer cancel()
	var fetches kgo.Fetches
	if d.session != nil {
		fetches = d.session.PollFetches(ctx)
	} else {
		fetches = d.client.PollFetches(ctx)
	}
	if err := fetches.Err0(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (d *driver) Block(length time.Duration) { time.Sleep(length) }

func (d *driver) Commit(how string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	switch how {
	case "async":
		go func() { contract.Failed(d.client.CommitUncommittedOffsets(context.Background())) }()
		return nil
	case "transaction":
		if _, err := d.session.End(ctx, kgo.TryCommit); err != nil {
			return err
		}
		return d.session.Begin()
	}
	return d.client.CommitUncommittedOffsets(ctx)
}

func (d *driver) Leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return d.client.LeaveGroupContext(ctx)
}

func (d *driver) Close() error {
	if d.session != nil {
		d.session.Close()
	} else {
		d.client.Close()
	}
	return nil
}

func main() { contract.Run(&driver{}) }
