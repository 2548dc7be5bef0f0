// What drivers/python/contract.py says of orders and events.
import { createInterface } from 'node:readline'

export const COMMIT_MS = 1000

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export function tell (event, details = {}) {
  process.stdout.write(JSON.stringify({ event, ...details }) + '\n')
}

export function failed (error) {
  tell('failed', { error: String(error?.message ?? error) })
}

/** Does what is ordered, one order after the other; the library itself polls. A driver has join, subscribe, block, commit, leave and close. */
export async function run (driver) {
  process.on('unhandledRejection', failed)
  process.on('uncaughtException', failed)
  tell('started')
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line)
    try {
      if (order.do === 'join') {
        await driver.join(order)
        if (order.commits !== 'auto') {
          setInterval(() => driver.commit(order.commits).catch(failed), COMMIT_MS)
        }
      } else if (order.do === 'subscribe') {
        await driver.subscribe(order.topics)
      } else if (order.do === 'block') {
        driver.block(order.ms)
      } else if (order.do === 'commit') {
        await driver.commit('sync')
        tell('committed')
      } else if (order.do === 'leave') {
        await driver.leave()
        tell('left')
      } else if (order.do === 'close') {
        await driver.close()
        tell('closed')
        process.exit(0)
      }
    } catch (error) {
      failed(error)
      if (order.do === 'close') process.exit(1)
    }
  }
  process.exit(1) // the parent is gone
}
