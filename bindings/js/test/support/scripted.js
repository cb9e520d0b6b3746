import { PostcardReader, PostcardWriter, toHex } from 'alpheus/protocol';

// A service by a script: `answer` says what becomes of an upload. It keeps what it was asked.
export function scripted(answer = () => ({})) {
  const asked = { uploads: [], introductions: 0 };
  const post = async (path, body) => {
    if (path === '/v1/device') {
      asked.introductions++;
      return { status: 200, body: new Uint8Array(0) };
    }
    const reader = new PostcardReader(body);
    const [upload] = reader.list(() => ({
      stream: reader.raw(16), outbox: toHex(reader.raw(16)), number: Number(reader.number()), frames: reader.list(() => reader.sized()),
    }));
    asked.uploads.push(upload);
    const { status = 200, became = [0], refused = [], fails = false, says = '{"rule":"role","detail":"x"}' } = answer(upload, asked) ?? {};
    if (fails) throw new TypeError('no connection');
    const out = new PostcardWriter().number(1);
    for (const number of became) out.number(number);
    out.number(refused.length);
    for (const [session, reason, text] of refused) {
      out.raw(upload.stream).number(session).number(reason);
      if (text !== undefined) out.text(text);
    }
    return { status, body: status === 200 ? out.bytes() : new TextEncoder().encode(says) };
  };
  return { post, asked };
}
