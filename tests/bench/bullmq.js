// node bullmq.js PORT COUNT PAYLOAD: submits COUNT jobs with 64 adds at a time, while a worker process runs them, 64 at
// a time; prints the jobs that were finished in a second. `node bullmq.js PORT worker` is that worker.
const { fork } = require('child_process');
const { readFileSync } = require('fs');
const { Queue, Worker } = require('bullmq');

const [port, count, payload] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(port) };

async function main() {
  const input = JSON.parse(readFileSync(payload));
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const worker = fork(__filename, [port, 'worker'], { silent: true });
  await new Promise((resolve) => worker.stdout.once('data', resolve));
  const start = process.hrtime.bigint();
  let next = 0;
  const add = async () => { while (next++ < Number(count)) await queue.add('echo', input, { removeOnComplete: true }); };
  await Promise.all(Array.from({ length: 64 }, add));
  const submitted = process.hrtime.bigint();
  for (;;) {
    const left = await queue.getJobCounts('waiting', 'active', 'prioritized');
    if (left.waiting + left.active + left.prioritized === 0) break;
  }
  const seconds = (since) => Number(since - start) / 1e9;
  console.log(JSON.stringify({ rate: count / seconds(process.hrtime.bigint()), added: count / seconds(submitted) }));
  worker.kill();
  await queue.close();
}

if (count === 'worker') {
  process.on('disconnect', () => process.exit(1)); // its parent was killed
  const worker = new Worker('bench', async (job) => job.data, { connection, concurrency: 64 });
  worker.waitUntilReady().then(() => console.log('ready'));
} else {
  main().then(() => process.exit(0));
}
