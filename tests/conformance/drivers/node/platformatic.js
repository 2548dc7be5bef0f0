// @platformatic/kafka.
import { Consumer, MessagesStreamFallbackModes, roundRobinAssigner } from '@platformatic/kafka'
import { failed, run, sleep, tell } from './contract.js'

class Driver {
  blockedUntil = 0
  places = new Map()

  async join (order) {
    this.order = order
    this.consumer = new Consumer({
      bootstrapBrokers: order.bootstrap.split(','),
      clientId: order.client_id,
      groupId: order.group,
      groupInstanceId: order.instance_id ?? undefined,
      sessionTimeout: order.session_timeout_ms,
      heartbeatInterval: order.heartbeat_interval_ms,
      rebalanceTimeout: order.rebalance_timeout_ms,
      metadataMaxAge: 2000,
      autocommit: order.commits === 'auto' ? 1000 : false,
      partitionAssigner: roundRobinAssigner
    })
    this.consumer.on('consumer:group:join', ({ assignments }) => {
      this.places.clear() // what another member may have now
      tell('assigned', { partitions: (assignments ?? []).reduce((count, one) => count + one.partitions.length, 0) })
    })
    this.consumer.on('consumer:group:rebalance', () => {
      this.places.clear()
      tell('revoked', { partitions: 0 })
    })
    await this.subscribe(order.topics)
  }

  async subscribe (topics) {
    if (this.stream) await this.stream.close()
    this.stream = await this.consumer.consume({ topics, maxWaitTime: 500, fallbackMode: MessagesStreamFallbackModes.EARLIEST })
    this.read(this.stream).catch(failed)
  }

  async read (stream) {
    for await (const { topic, partition, offset } of stream) {
      while (Date.now() < this.blockedUntil) await sleep(100)
      this.places.set(`${topic}-${partition}`, { topic, partition, offset: offset + 1n, leaderEpoch: 0 })
    }
  }

  block (ms) {
    this.blockedUntil = Date.now() + ms
  }

  async commit () {
    const offsets = [...this.places.values()]
    this.places.clear()
    if (offsets.length) await this.consumer.commit({ offsets })
  }

  async leave () {
    await this.stream.close()
    this.stream = undefined
    await this.consumer.leaveGroup()
  }

  async close () {
    if (this.stream) await this.stream.close()
    await this.consumer.close(true)
  }
}

run(new Driver())
