// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Elastic averaging on CIFAR-10 as text: `AsyncEASGDCIFARLocalTest SOLVER NET PARAM [TRAIN]`. The weights are
  * in final_cifar.weight at the end.
  */
object AsyncEASGDCIFARLocalTest {
  def main(args: Array[String]): Unit = Program.run("AsyncEASGDCIFARLocalTest", args, "PARAM") { program =>
    val train = program.images("text", 0, "/data/CIFAR-10/train_batch.txt")
    program.saveWeight(program.easgd(train, adaptive = false), train, "final_cifar.weight")
  }
}
