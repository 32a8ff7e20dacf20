// Sends a body that is too large with Node's own clients, and prints status@seconds of each call.
// usage: node too_large.js URL KEY MEGABYTES TIMES
const http = require('http');
const [url, key, megabytes, times] = process.argv.slice(2);
const body = Buffer.alloc(Number(megabytes) * 1048576, 'x');
const headers = { Authorization: key, 'Content-Type': 'application/json' };

function viaHttp(chunked, expect) {
  return new Promise((resolve) => {
    const own = { ...headers };
    if (chunked) own['Transfer-Encoding'] = 'chunked';
    else own['Content-Length'] = body.length;
    if (expect) own.Expect = '100-continue';
    const request = http.request(url, { method: 'POST', headers: own, agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode));
    });
    request.on('error', (error) => resolve(error.code || error.message));
    if (expect) {
      request.on('continue', () => request.end(body));
      request.flushHeaders();
    } else {
      request.end(body);
    }
  });
}

// Without Expect, which fetch refuses to send.
async function viaFetch(chunked) {
  const stream = () => new ReadableStream({
    start(controller) {
      for (let at = 0; at < body.length; at += 65536) controller.enqueue(body.subarray(at, at + 65536));
      controller.close();
    },
  });
  try {
    const options = { method: 'POST', headers, body: chunked ? stream() : body };
    if (chunked) options.duplex = 'half';
    const answer = await fetch(url, options);
    await answer.text();
    return answer.status;
  } catch (error) {
    return (error.cause && error.cause.code) || error.message;
  }
}

async function main() {
  const kinds = [
    ['node http, length', () => viaHttp(false, false)],
    ['node http, chunks', () => viaHttp(true, false)],
    ['node http, length, expect', () => viaHttp(false, true)],
    ['node http, chunks, expect', () => viaHttp(true, true)],
    ['node fetch, length', () => viaFetch(false)],
    ['node fetch, chunks', () => viaFetch(true)],
  ];
  for (const [name, send] of kinds) {
    const seen = [];
    for (let i = 0; i < Number(times); ++i) {
      const start = Date.now();
      const status = String(await send()).replaceAll(' ', '_');
      seen.push(`${status}@${(Date.now() - start) / 1000}`);
    }
    console.log(`${name}: ${seen.join(' ')}`);
  }
}
main();
