// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.CafetiereException;
import cafetiere.core.lmdb.Lmdb;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The rows of a range, one at a time; in a task. Spark closes it when the task ends: perhaps while another
 * thread of it, which feeds a worker, still reads.
 */
final class LmdbReader implements PartitionReader<InternalRow>, LmdbColumn.Record {
  /** Makes the readers of a scan's tasks. */
  record Factory(StructType columns, boolean isByPixel, SerializableConfiguration conf)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return new LmdbReader((LmdbRange) partition, this);
    }
  }

  private final String file;
  private final LmdbColumn[] columns;
  private final boolean isByPixel;
  private final boolean needsValues;
  private final HadoopBytes bytes;
  private final Lmdb.Cursor cursor;
  private Datum datum;
  private boolean closed;

  private LmdbReader(LmdbRange range, Factory factory) {
    file = range.file();
    columns = Arrays.stream(factory.columns().fieldNames()).map(LmdbColumn::of)
        .toArray(LmdbColumn[]::new);
    isByPixel = factory.isByPixel();
    needsValues = !Arrays.stream(columns).allMatch(LmdbColumn::isOfKey);
    bytes = new HadoopBytes(file, range.size(), range.ahead(), factory.conf().value());
    cursor = cursor(range);
  }

  private Lmdb.Cursor cursor(LmdbRange range) {
    try (Lmdb lmdb = bytes.open()) {
      return lmdb.cursor(range.from(), range.to());
    } catch (RuntimeException e) {
      bytes.close();
      throw e;
    }
  }

  @Override
  public synchronized boolean next() {
    requireOpen();
    datum = null;
    return cursor.next(needsValues);
  }

  @Override
  public synchronized InternalRow get() {
    requireOpen();
    Object[] values = new Object[columns.length];
    for (int i = 0; i < values.length; i++) values[i] = columns[i].of(this);
    return new GenericInternalRow(values);
  }

  @Override
  public synchronized void close() {
    closed = true;
    cursor.close();
    bytes.close();
  }

  private void requireOpen() {
    if (closed) throw new IllegalStateException("the task has ended: no more rows of " + file + " are read");
  }

  @Override
  public ByteBuffer key() {
    return cursor.key();
  }

  @Override
  public ByteBuffer value() {
    return cursor.value();
  }

  @Override
  public boolean isByPixel() {
    return isByPixel;
  }

  @Override
  public Datum datum() {
    if (datum == null) {
      datum = Datum.parse(value());
      String fault = datum == null
          ? "is no Datum: read it with the option raw, which gives key and value" : datum.fault();
      if (!fault.isEmpty()) {
        throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, "LMDB \"" + file
            + "\": the record with the key " + UTF_8.decode(key().duplicate()) + " " + fault);
      }
    }
    return datum;
  }
}
