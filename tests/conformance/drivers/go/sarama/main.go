// sarama.
package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"conformance/contract"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

type driver struct {
	order   contract.Order
	group   sarama.ConsumerGroup
	cancel  context.CancelFunc
	ended   chan struct{}
	session atomic.Pointer[sarama.ConsumerGroupSession]
	blocked atomic.Int64 // until then, nanoseconds since the epoch
}

func (d *driver) Join(order contract.Order) error {
	d.order = order
	strategies := map[string]sarama.BalanceStrategy{
		"range":      sarama.NewBalanceStrategyRange(),
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	}
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if order.Release != "" {
		version, err := sarama.ParseKafkaVersion(order.Release)
		if err != nil {
			return err
		}
		config.Version = version
	}
	if order.RequestTimeoutMs != 0 {
		config.Net.ReadTimeout = contract.Ms(order.RequestTimeoutMs)
	}
	trusted, err := order.TLS()
	if err != nil {
		return err
	}
	config.Net.TLS.Enable, config.Net.TLS.Config = trusted != nil, trusted
	if order.User != "" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
		config.Net.SASL.User, config.Net.SASL.Password = order.User, order.Password
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &login{} }
	}
	config.ClientID = order.ClientID
	config.Metadata.RefreshFrequency = 2 * time.Second
	config.Consumer.Group.Session.Timeout = contract.Ms(order.SessionTimeoutMs)
	config.Consumer.Group.Heartbeat.Interval = contract.Ms(order.HeartbeatIntervalMs)
	config.Consumer.Group.Rebalance.Timeout = contract.Ms(order.RebalanceTimeoutMs)
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[order.Assignor]}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = order.Commits == "auto"
	config.Consumer.Offsets.AutoCommit.Interval = time.Second
	config.Consumer.Return.Errors = true
	if order.InstanceID != nil {
		config.Consumer.Group.InstanceId = *order.InstanceID
	}
	group, err := sarama.NewConsumerGroup(strings.Split(order.Bootstrap, ","), order.Group, config)
	if err != nil {
		return err
	}
	d.group = group
	go func() {
		for err := range group.Errors() {
			contract.Failed(err)
		}
	}()
	return d.consume(order.Topics)
}

func (d *driver) consume(topics []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.ended = cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		for ctx.Err() == nil {
			err := d.group.Consume(ctx, topics, d)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
			contract.Failed(err)
			if err != nil {
				time.Sleep(contract.Poll)
			}
		}
	}(d.ended)
	return nil
}

// Setup is called by sarama when a session begins.
func (d *driver) Setup(session sarama.ConsumerGroupSession) error {
	contract.Partitions("assigned", session.Claims())
	d.session.Store(&session)
	return nil
}

// Cleanup is called by sarama when a session ends.
func (d *driver) Cleanup(session sarama.ConsumerGroupSession) error {
	d.session.Store(nil)
	contract.Partitions("revoked", session.Claims())
	return nil
}

// ConsumeClaim is called by sarama for each partition.
func (d *driver) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			if wait := time.Until(time.Unix(0, d.blocked.Load())); wait > 0 {
				time.Sleep(wait)
			}
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func (d *driver) Subscribe(topics []string) error {
	d.cancel()
	<-d.ended
	return d.consume(topics)
}

func (d *driver) Poll() error {
	time.Sleep(contract.Poll)
	return nil
}

func (d *driver) Block(length time.Duration) { d.blocked.Store(time.Now().Add(length).UnixNano()) }

func (d *driver) Commit(string) error {
	if session := d.session.Load(); session != nil {
		(*session).Commit()
	}
	return nil
}

func (d *driver) Leave() error {
	d.cancel()
	<-d.ended
	return nil
}

func (d *driver) Close() error {
	d.cancel()
	<-d.ended
	return d.group.Close()
}

// login is one SCRAM conversation; sarama brings none of its own.
type login struct{ *scram.ClientConversation }

func (l *login) Begin(user, password, authorization string) error {
	client, err := scram.SHA512.NewClient(user, password, authorization)
	if err == nil {
		l.ClientConversation = client.NewConversation()
	}
	return err
}

func main() { contract.Run(&driver{}) }
