// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import caffe.Caffe.SolverParameter;
import cafetiere.core.net.Net;
import cafetiere.jcaffe.Cluster;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A net on some devices of this node, which train together with those of the other nodes of a cluster:
 * each update takes the mean of all devices' gradients, so that all have the same weights. A device is
 * a rank that computes on this machine's processors. Each device is for one thread at a time.
 */
public class CaffeNet extends BaseObject {
  /** No connection: a cluster of one node. */
  public static final int NONE = 0;
  /** InfiniBand where all nodes have UCX, else TCP. */
  public static final int RDMA = 1;
  /** TCP. */
  public static final int SOCKET = 2;

  private static final Logger LOG = LoggerFactory.getLogger(CaffeNet.class);

  private final SolverParameter solverParameter;
  private final int firstDevice;
  private final int testNet;
  private final boolean isTraining;
  private final int initIter;
  private final List<Device> devices = new ArrayList<>();
  private final Cluster cluster; // null: one device alone
  private final List<float[]> validated = new ArrayList<>(); // sums of each output
  private int validations;

  /**
   * Makes nets and solvers.
   *
   * @param solverFile path of the solver's prototxt
   * @param modelFile weights to begin with; "" for none
   * @param stateFile state to go on from, whose weights lie where it says or beside it; "" for none
   * @param numLocalDevices of this node; all nodes have as many
   * @param nodeRank of this node, below clusterSize
   * @param connectionType NONE, RDMA or SOCKET
   * @param startDeviceId what {@link #deviceID} begins with; -1: 0
   * @param validationNetId which of the solver's test nets predicts and validates
   * @throws IOException if the solver's file cannot be read
   */
  public CaffeNet(String solverFile, String modelFile, String stateFile, int numLocalDevices,
      int clusterSize, int nodeRank, boolean isTraining, int connectionType, int startDeviceId,
      int validationNetId) throws IOException {
    super(1);
    check(numLocalDevices > 0, "numLocalDevices is " + numLocalDevices + ": it must be above 0");
    check(nodeRank >= 0 && nodeRank < clusterSize,
        "there is no node " + nodeRank + " in a cluster of " + clusterSize);
    check(connectionType >= NONE && connectionType <= SOCKET,
        "connectionType is " + connectionType + ": set it to NONE, RDMA or SOCKET");
    check(connectionType != NONE || clusterSize == 1,
        "a cluster of " + clusterSize + " nodes needs a connectionType: SOCKET or RDMA");
    check(validationNetId >= 0, "validationNetId is " + validationNetId);
    solverParameter = Utils.GetSolverParam(solverFile);
    firstDevice = Math.max(0, startDeviceId);
    testNet = validationNetId;
    this.isTraining = isTraining;
    for (int device = 0; device < numLocalDevices; ++device) {
      devices.add(new Device(solverParameter, isTraining, validationNetId,
          nodeRank * numLocalDevices + device));
      devices.get(device).load(modelFile, stateFile);
    }
    initIter = isTraining ? devices.get(0).solver().iter() : 0;
    cluster = clusterSize * numLocalDevices == 1 ? null
        : new Cluster(clusterSize, nodeRank, numLocalDevices, connectionType == RDMA);
  }

  /**
   * Connects with the other nodes. A CaffeNet of several devices needs it also in a cluster of one.
   *
   * @param addresses of the nodes, by rank: for each what its {@link #localAddresses} has for this
   *     one; its own is not read, and a cluster of one node needs none
   * @return true; what fails is an exception
   */
  public boolean connect(String[] addresses) {
    if (cluster != null) {
      cluster.connect(addresses);
      if (isTraining) {
        cluster.atOnce(device -> devices.get(device).solver().join(cluster.group(device)));
      }
    }
    return true;
  }

  /** Returns when all nodes have called it; not while one of the devices trains. */
  public boolean sync() {
    if (cluster != null) {
      cluster.sync();
    }
    return true;
  }

  /** Whether there is such a device; threads need no other preparation. */
  public boolean init(int solverIndex, boolean enableNN) {
    return isDevice(solverIndex);
  }

  /** The same. */
  public boolean init(int solverIndex) {
    return init(solverIndex, false);
  }

  /**
   * Does an iteration on a batch. Returns when all devices of the cluster have done theirs, each on
   * its own batch and thread.
   *
   * @param data a blob for each top of the net's first layer
   * @return true; what fails is an exception
   */
  public boolean train(int solverIndex, FloatBlob[] data) {
    device(solverIndex).train(data);
    return true;
  }

  /**
   * Runs the net of phase TEST, with the weights of now.
   *
   * @return views of the blobs that are named, valid until the next call
   */
  public FloatBlob[] predict(int solverIndex, FloatBlob[] data, String[] outputBlobNames) {
    Net net = device(solverIndex).test(data);
    FloatBlob[] outputs = new FloatBlob[outputBlobNames.length];
    for (int i = 0; i < outputs.length; ++i) {
      outputs[i] = new FloatBlob(net.blob(outputBlobNames[i]));
    }
    return outputs;
  }

  /** Runs the first device's net of phase TEST on a batch, and adds up its outputs. */
  public void validation(FloatBlob[] data) {
    devices.get(0).test(data);
    FloatBlob[] outputs = getValidationOutputBlobs(getValidationOutputBlobNames().length);
    for (int i = 0; i < outputs.length; ++i) {
      float[] sum = new float[outputs[i].count()];
      outputs[i].data().asFloatBuffer().get(sum);
      if (validations > 0) {
        for (int k = 0; k < sum.length; ++k) {
          sum[k] += validated.get(i)[k];
        }
        validated.set(i, sum);
      } else {
        validated.add(sum);
      }
    }
    ++validations;
  }

  /** Logs the means of the outputs since the last call. */
  public void aggregateValidationOutputs() {
    String[] names = getValidationOutputBlobNames();
    for (int i = 0; i < validated.size(); ++i) {
      for (float sum : validated.get(i)) {
        LOG.info("    Test net output #{}: {} = {}", i, names[i], sum / validations);
      }
    }
    validated.clear();
    validations = 0;
  }

  /** What to tell each other node, by rank; "" for this one. Empty in a cluster of one. */
  public String[] localAddresses() {
    return cluster == null ? new String[0] : cluster.localAddresses();
  }

  /** The number of a device; -1 if there is none. */
  public int deviceID(int solverIndex) {
    return isDevice(solverIndex) ? firstDevice + solverIndex : -1;
  }

  /** The iteration that the training began with; -1 if there is no such device. */
  public int getInitIter(int solverIndex) {
    return isDevice(solverIndex) ? initIter : -1;
  }

  /** The solver's max_iter; -1 if there is no such device. */
  public int getMaxIter(int solverIndex) {
    return isDevice(solverIndex) ? solverParameter.getMaxIter() : -1;
  }

  /** Batches of a validation, as the solver says; -1 if there is no such device. */
  public int getTestIter(int solverIndex) {
    if (!isDevice(solverIndex)) {
      return -1;
    }
    return testNet < solverParameter.getTestIterCount() ? solverParameter.getTestIter(testNet) : 0;
  }

  /** Iterations between validations, as the solver says. */
  public int getTestInterval() {
    return solverParameter.getTestInterval();
  }

  /**
   * Writes weights and state. Any node may do so alone: all have the same.
   *
   * @return the iteration; -1 where nothing trains
   */
  public int snapshot() {
    if (!isTraining) {
      return -1;
    }
    devices.get(0).solver().snapshot();
    return devices.get(0).solver().iter();
  }

  /** The file that {@link #snapshot} writes at an iteration; null if that is negative. */
  public String snapshotFilename(int iter, boolean isState) {
    if (iter < 0) {
      return null;
    }
    boolean hdf5 = solverParameter.getSnapshotFormat() == SolverParameter.SnapshotFormat.HDF5;
    return solverParameter.getSnapshotPrefix() + "_iter_" + iter
        + (isState ? ".solverstate" : ".caffemodel") + (hdf5 ? ".h5" : "");
  }

  /** The outputs of the net of phase TEST. */
  public String[] getValidationOutputBlobNames() {
    Net net = devices.get(0).testing();
    return net.outputs().stream().map(net.blobNames()::get).toArray(String[]::new);
  }

  /** Views of the first {@code length} of them, as the last validation left them. */
  public FloatBlob[] getValidationOutputBlobs(int length) {
    Net net = devices.get(0).testing();
    if (length < 0 || length > net.outputs().size()) {
      throw new IllegalArgumentException(
          length + " outputs, and the net has " + net.outputs().size());
    }
    FloatBlob[] outputs = new FloatBlob[length];
    for (int i = 0; i < length; ++i) {
      outputs[i] = new FloatBlob(net.blob(net.outputs().get(i)));
    }
    return outputs;
  }

  @Override
  protected void deallocate(long address) {
    if (cluster != null) {
      cluster.close();
    }
    devices.forEach(Device::close);
  }

  private boolean isDevice(int index) {
    return index >= 0 && index < devices.size();
  }

  private Device device(int index) {
    check(isDevice(index), "there is no device " + index + " among " + devices.size());
    return devices.get(index);
  }

  private static void check(boolean holds, String message) {
    if (!holds) {
      throw new IllegalArgumentException(message);
    }
  }
}
