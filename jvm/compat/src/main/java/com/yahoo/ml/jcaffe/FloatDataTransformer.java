// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import caffe.Caffe.TransformationParameter;
import cafetiere.core.image.Transformer;
import cafetiere.jcaffe.Json;
import java.io.IOException;
import java.util.concurrent.ThreadLocalRandom;

/** What a data layer's transform_param does to images. For one thread at a time. */
public class FloatDataTransformer extends BaseObject {
  private final Transformer transformer;
  private long images;

  /** Makes one, which cuts and mirrors at random where {@code isTrain} says so. */
  public FloatDataTransformer(TransformationParameter parameter, boolean isTrain)
      throws IOException {
    super(1);
    long seed = ThreadLocalRandom.current().nextLong(Long.MAX_VALUE);
    transformer = new Transformer(
        Json.object("param", parameter.toString(), "phase", isTrain ? "TRAIN" : "TEST", "seed", seed));
  }

  /** Transforms all images into a blob whose first size is their number. */
  public void transform(MatVector images, FloatBlob transformed) {
    int count = transformed.count() / Math.max(1, images.size());
    if (transformed.shape()[0] != images.size()) {
      throw new IllegalArgumentException(
          images.size() + " images for a blob of " + transformed.shape()[0] + " rows");
    }
    for (int i = 0; i < images.size(); ++i) {
      if (images.get(i) == null) {
        throw new IllegalArgumentException("no image is at place " + i);
      }
      transformer.run(images.get(i).image(), this.images++, transformed.data(), i * count, count);
    }
  }

  /** Never was there. */
  public void transform(FloatBlob input, FloatBlob transformed) throws Exception {
    throw new UnsupportedOperationException("only images can be transformed: use a MatVector");
  }

  @Override
  protected void deallocate(long address) {
    transformer.close();
  }
}
