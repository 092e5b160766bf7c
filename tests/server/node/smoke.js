// SPDX-License-Identifier: Apache-2.0

// A program that uses Bigtable by Google's client for Node, at the address in BIGTABLE_EMULATOR_HOST. Prints a line for each
// step; ends with 1 at the first wrong answer.
'use strict';

const assert = require('assert');
const {Bigtable} = require('@google-cloud/bigtable');

const bigtable = new Bigtable({projectId: 'p'});
const instance = bigtable.instance('i');
const table = instance.table('fruit');

const keysOf = rows => rows.map(row => row.id);

async function createTable() {
  await table.create({families: ['color', 'price']});
  const [tables] = await instance.getTables();
  assert(tables.map(t => t.id).includes('fruit'));
  const [families] = await table.getFamilies();
  assert.deepStrictEqual(families.map(f => f.id).sort(), ['color', 'price']);
  await assert.rejects(table.create({families: ['color']}), error => error.code === 6 /* ALREADY_EXISTS */);
}

async function insertRows() {
  const row = (key, color, price) => ({
    key,
    data: {color: {name: {value: color, timestamp: 1000}}, price: {cents: {value: price, timestamp: 1000}}},
  });
  await table.insert([row('apple', 'green', 30), row('banana', 'yellow', 25), row('cherry', 'red', 5)]);
}

async function readRows() {
  const [all] = await table.getRows();
  assert.deepStrictEqual(keysOf(all), ['apple', 'banana', 'cherry']);
  const [some] = await table.getRows({ranges: [{start: 'b', end: 'c'}]});
  assert.deepStrictEqual(keysOf(some), ['banana']);
  const [limited] = await table.getRows({limit: 2});
  assert.deepStrictEqual(keysOf(limited), ['apple', 'banana']);
  const [named] = await table.getRows({keys: ['cherry', 'none']});
  assert.deepStrictEqual(keysOf(named), ['cherry']);
  const [filtered] = await table.getRows({filter: [{family: 'color'}, {value: /^(red|green)$/}]});
  assert.deepStrictEqual(keysOf(filtered), ['apple', 'cherry']);
  const [apple] = await table.row('apple').get();
  assert.strictEqual(apple.data.color.name[0].value, 'green');
  assert.strictEqual(Number(apple.data.price.cents[0].value), 30);
  await assert.rejects(table.row('none').get(), error => error.code === 404);
}

async function changeRows() {
  const apple = table.row('apple');
  await apple.save({color: {name: {value: 'red', timestamp: 2000}}});
  const [versions] = await apple.get(['color:name']);
  assert.deepStrictEqual(versions.color.name.map(cell => cell.value), ['red', 'green']);
  const [matched] = await apple.filter([{family: 'color'}, {value: 'red'}], {
    onMatch: [{method: 'insert', data: {color: {seen: {value: 'yes', timestamp: 1000}}}}],
    onNoMatch: [{method: 'delete'}],
  });
  assert.strictEqual(matched, true);
  assert.strictEqual((await apple.get(['color:seen']))[0].color.seen[0].value, 'yes');
  await apple.createRules([{column: 'color:seen', append: '!'}]);
  assert.strictEqual((await apple.get(['color:seen']))[0].color.seen[0].value, 'yes!');
  const count = table.row('count');
  await count.increment('price:n', 2);
  await count.increment('price:n', 40);
  assert.strictEqual(Number((await count.get(['price:n']))[0].price.n[0].value), 42);
}

async function deleteRows() {
  await table.row('banana').delete();
  await table.row('apple').deleteCells(['price:cents']);
  const [rows] = await table.getRows();
  assert.deepStrictEqual(keysOf(rows), ['apple', 'cherry', 'count']);
  assert.strictEqual(rows[0].data.price, undefined);
  await table.deleteRows('ch');
  assert.deepStrictEqual(keysOf((await table.getRows())[0]), ['apple', 'count']);
}

async function manyRows() {
  const value = 'v'.repeat(1000);
  const rows = Array.from({length: 5000}, (_, i) => ({
    key: `many${String(i).padStart(5, '0')}`,
    data: {color: {name: {value, timestamp: 1000}}},
  }));
  await table.insert(rows);
  let count = 0;
  await new Promise((resolve, reject) => {
    table.createReadStream({prefix: 'many'})
      .on('data', row => {
        assert.strictEqual(row.id, rows[count++].key);
        assert.strictEqual(row.data.color.name[0].value, value);
      })
      .on('error', reject)
      .on('end', resolve);
  });
  assert.strictEqual(count, rows.length);
  const [samples] = await table.sampleRowKeys();
  assert(samples.length > 0);
}

async function refusals() {
  await assert.rejects(table.row('r').save({shape: {round: 'yes'}}), /shape/);
  await assert.rejects(instance.table('vegetable').getRows(), error => error.code === 5 /* NOT_FOUND */);
}

async function deleteTable() {
  await table.delete();
  const [exists] = await table.exists();
  assert.strictEqual(exists, false);
}

async function main() {
  for (const step of [createTable, insertRows, readRows, changeRows, deleteRows, manyRows, refusals, deleteTable]) {
    await step();
    console.log(`${step.name}: well`);
  }
}

main().then(() => process.exit(0), error => {
  console.error(error);
  process.exit(1);
});
