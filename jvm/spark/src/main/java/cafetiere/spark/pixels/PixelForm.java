// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import cafetiere.core.CafetiereException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;
import org.apache.hadoop.io.ArrayPrimitiveWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/** How images lie in files. */
enum PixelForm {
  /** A line an image: its values from 0 to 255 and its label, with tabs between them. */
  TEXT {
    @Override
    JavaRDD<Row> read(SparkContext sc, String path, ImageSize size) {
      return JavaSparkContext.fromSparkContext(sc).textFile(path)
          .filter(line -> !line.isBlank()).map(line -> ofLine(line, size));
    }
  },
  /** CIFAR-10's records: a byte for the label, and the pixels of an image of 3 x 32 x 32. */
  CIFAR {
    @Override
    JavaRDD<Row> read(SparkContext sc, String path, ImageSize size) {
      return records(sc, path, 1);
    }
  },
  /** CIFAR-100's records, whose first byte is a coarser label that is left out. */
  CIFAR100 {
    @Override
    JavaRDD<Row> read(SparkContext sc, String path, ImageSize size) {
      return records(sc, path, 2);
    }
  },
  /** SequenceFiles of labels (FloatWritable) and of bytes or floats (ArrayPrimitiveWritable). */
  SEQUENCE {
    @Override
    JavaRDD<Row> read(SparkContext sc, String path, ImageSize size) {
      return JavaSparkContext.fromSparkContext(sc)
          .sequenceFile(path, FloatWritable.class, ArrayPrimitiveWritable.class)
          .map(record -> ofArray(record._1().get(), record._2().get(), size));
    }
  };

  private static final ImageSize CIFAR_SIZE = new ImageSize(3, 32, 32);
  private static final int CIFAR_BYTES = 3 * 32 * 32;
  private static final int LARGEST = 255;

  abstract JavaRDD<Row> read(SparkContext sc, String path, ImageSize size);

  /** The form of that name. */
  static PixelForm of(String name) {
    for (PixelForm form : values()) {
      if (form.title().equals(name)) return form;
    }
    throw new IllegalArgumentException("option form is '" + name + "': it must be one of "
        + Arrays.stream(values()).map(PixelForm::title).collect(Collectors.joining(", ")));
  }

  private String title() {
    return name().toLowerCase(Locale.ROOT);
  }

  private static JavaRDD<Row> records(SparkContext sc, String path, int labels) {
    return JavaSparkContext.fromSparkContext(sc).binaryRecords(path, labels + CIFAR_BYTES)
        .map(record -> row(record[labels - 1] & 0xff, CIFAR_SIZE,
            Arrays.copyOfRange(record, labels, record.length), null));
  }

  private static Row ofLine(String line, ImageSize size) {
    String[] values = line.strip().split("\t");
    byte[] pixels = new byte[values.length - 1];
    for (int i = 0; i < pixels.length; i++) {
      float value = number(values[i], i, line);
      if (value < 0 || value > LARGEST || value != Math.rint(value)) throw bad(values[i], i, line);
      pixels[i] = (byte) (int) value;
    }
    float label = number(values[pixels.length], pixels.length, line);
    if (!Float.isFinite(label)) throw bad(values[pixels.length], pixels.length, line);
    return row(label, size.of(pixels.length), pixels, null);
  }

  private static Row ofArray(float label, Object values, ImageSize size) {
    if (values instanceof byte[] pixels) return row(label, size.of(pixels.length), pixels, null);
    if (values instanceof float[] numbers) {
      return row(label, size.of(numbers.length), null, numbers);
    }
    throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, "an image of the"
        + " SequenceFile is of type " + values.getClass().getSimpleName()
        + ": it must be an array of byte or float");
  }

  private static Row row(float label, ImageSize size, byte[] pixels, float[] numbers) {
    return RowFactory.create(
        label, size.channels(), size.height(), size.width(), pixels, numbers);
  }

  private static float number(String text, int place, String line) {
    try {
      return Float.parseFloat(text);
    } catch (NumberFormatException e) {
      throw bad(text, place, line);
    }
  }

  private static CafetiereException bad(String text, int place, String line) {
    String head = line.length() <= 40 ? line : line.substring(0, 40) + "..";
    return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, "the line '" + head
        + "' has '" + text + "' as value " + (place + 1)
        + ": pixels are whole numbers from 0 to 255, and the label is the last value, a number");
  }
}
