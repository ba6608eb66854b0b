// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.spark.util.HadoopFiles;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Some records of a file whose records all have the same size; a task reads them.
 *
 * @param file the file's path
 * @param header bytes before the first record
 * @param size bytes of a record
 * @param first the number of the first one of them
 * @param count how many they are
 */
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
record RecordRange(String file, long header, int size, long first, long count)
    implements Serializable {
  /** A range smaller than this is not worth a task. */
  private static final long LEAST_BYTES = 4 << 20;
  private static final int BUFFER = 1 << 20;

  /** The whole file. */
  RecordRange(String file, long header, int size, long count) {
    this(file, header, size, 0, count);
  }

  /** How many ranges a read of so many bytes is worth, where the user has not said. */
  static int ranges(JavaSparkContext sc, int wanted, long bytes) {
    long worthwhile = Math.max(1, bytes / LEAST_BYTES);
    return wanted > 0 ? wanted : (int) Math.min(worthwhile, sc.defaultParallelism());
  }

  /** The same records in ranges; one where the file is compressed, which has to be read in order. */
  List<RecordRange> split(int ranges, Configuration conf) {
    boolean isWhole = SourceFiles.isCompressed(new Path(file), conf);
    long parts = isWhole ? 1 : Math.max(1, Math.min(ranges, count));
    List<RecordRange> result = new ArrayList<>();
    for (long i = 0; i < parts; i++) {
      long from = count * i / parts;
      result.add(new RecordRange(file, header, size, first + from, count * (i + 1) / parts - from));
    }
    return result;
  }

  /** The records of the same numbers in a file beside it. */
  RecordRange alsoIn(String other, long itsHeader, int itsSize) {
    return new RecordRange(other, itsHeader, itsSize, first, count);
  }

  /** Reads them, in a task. */
  Iterator<byte[]> read(Configuration conf) {
    DataInputStream in;
    try {
      in = new DataInputStream(
          new BufferedInputStream(HadoopFiles.open(new Path(file), conf), BUFFER));
      SourceFiles.closeAfterTask(in);
      in.skipNBytes(header + first * size);
    } catch (IOException e) {
      throw SourceFiles.unread(file, e);
    }
    return new Iterator<>() {
      private long left = count;

      @Override
      public boolean hasNext() {
        return left > 0;
      }

      @Override
      public byte[] next() {
        if (left-- <= 0) throw new NoSuchElementException();
        byte[] record = new byte[size];
        try {
          in.readFully(record);
        } catch (EOFException e) {
          throw SourceFiles.fault(file, "ends within record " + (first + count - left - 1)
              + ": it is cut short");
        } catch (IOException e) {
          throw SourceFiles.unread(file, e);
        }
        return record;
      }
    };
  }
}
