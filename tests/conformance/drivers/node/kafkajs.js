// kafkajs.
import { readFileSync } from 'node:fs'
import kafkajs from 'kafkajs'
import { failed, run, sleep, tell } from './contract.js'

const { Kafka, PartitionAssigners, logLevel } = kafkajs

class Driver {
  blockedUntil = 0
  places = new Map()

  async join (order) {
    this.order = order
    this.kafka = new Kafka({
      brokers: order.bootstrap.split(','),
      clientId: order.client_id,
      logLevel: logLevel.NOTHING,
      ssl: order.ca ? { ca: [readFileSync(order.ca)] } : undefined,
      sasl: order.user ? { mechanism: 'scram-sha-512', username: order.user, password: order.password } : undefined,
      retry: { maxRetryTime: 1000, initialRetryTime: 200, retries: 10 }
    })
    this.consumer = this.kafka.consumer({
      groupId: order.group,
      sessionTimeout: order.session_timeout_ms,
      heartbeatInterval: order.heartbeat_interval_ms,
      rebalanceTimeout: order.rebalance_timeout_ms,
      metadataMaxAge: 2000,
      maxWaitTimeInMs: 500,
      partitionAssigners: [PartitionAssigners.roundRobin]
    })
    this.consumer.on(this.consumer.events.REBALANCING, () => this.places.clear())
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.places.clear() // what another member may have now
      const partitions = Object.values(payload.memberAssignment).flat().length
      tell('assigned', { partitions })
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => failed(payload.error))
    await this.consumer.connect()
    await this.subscribe(order.topics)
  }

  async subscribe (topics) {
    if (this.running) await this.consumer.stop()
    this.running = true
    await this.consumer.subscribe({ topics, fromBeginning: true })
    await this.consumer.run({
      autoCommit: this.order.commits === 'auto',
      autoCommitInterval: 1000,
      eachMessage: async ({ topic, partition, message }) => {
        while (Date.now() < this.blockedUntil) await sleep(100)
        this.places.set(`${topic}-${partition}`, { topic, partition, offset: String(Number(message.offset) + 1) })
      }
    })
  }

  block (ms) {
    this.blockedUntil = Date.now() + ms
  }

  async commit (how) {
    const places = [...this.places.values()]
    this.places.clear()
    if (places.length === 0) return
    if (how === 'async') {
      this.consumer.commitOffsets(places).catch(failed)
    } else {
      await this.consumer.commitOffsets(places)
    }
  }

  async leave () {
    this.running = false
    await this.consumer.stop()
  }

  async close () {
    await this.consumer.disconnect()
  }
}

run(new Driver())
